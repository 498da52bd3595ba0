//! Python literals in files: the header of `.npy`, the dictionary of `BigFile`. Text, whole numbers, truth values, tuples, lists and
//! dictionaries, nothing that computes.

/// Literals nest at most this deep; the files we know need two.
const DEEPEST: usize = 8;

/// One literal.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `None`.
    Nothing,
    /// `True` or `False`.
    Truth(bool),
    /// A whole number that is not negative.
    Whole(usize),
    /// Text, its escapes resolved.
    Text(String),
    /// A tuple or a list.
    Items(Vec<Literal>),
    /// A dictionary, in file order.
    Entries(Vec<(Literal, Literal)>),
}

impl Literal {
    /// The entry called `key`, when it is a dictionary that has one.
    pub fn entry(&self, key: &str) -> Option<&Literal> {
        let Self::Entries(entries) = self else { return None };
        entries.iter().find(|(name, _)| matches!(name, Self::Text(name) if name == key)).map(|(_, value)| value)
    }
}

/// The one literal that `text` holds. What it takes in memory is some 30 times the text at the most; [`weight`](crate::json::weight)
/// says it before.
///
/// # Errors
/// Says what is wrong and at which byte.
pub fn parse(text: &str) -> Result<Literal, String> {
    let mut reader = Reader { text, at: 0 };
    let literal = reader.literal(0)?;
    reader.space();
    if reader.at < text.len() { Err(reader.unexpected()) } else { Ok(literal) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn literal(&mut self, depth: usize) -> Result<Literal, String> {
        if depth > DEEPEST {
            return Err(format!("nests deeper than {DEEPEST} at byte {}", self.at));
        }
        self.space();
        match self.peek() {
            Some('{') => self.entries(depth),
            Some('(') => Ok(Literal::Items(self.items(')', depth)?)),
            Some('[') => Ok(Literal::Items(self.items(']', depth)?)),
            Some(quote @ ('\'' | '"')) => self.quoted(quote).map(Literal::Text),
            // Python 2 marks its text: u'…', and whole numbers: 12L.
            Some('u' | 'b') if matches!(self.rest().chars().nth(1), Some('\'' | '"')) => {
                self.at += 1;
                self.literal(depth + 1)
            }
            Some('0'..='9') => self.whole(),
            _ => self.word(),
        }
    }

    fn entries(&mut self, depth: usize) -> Result<Literal, String> {
        self.at += 1;
        let mut entries = Vec::new();
        while !self.ends('}') {
            let key = self.literal(depth + 1)?;
            self.expect(':')?;
            entries.push((key, self.literal(depth + 1)?));
            if !self.comma() && !self.ends('}') {
                return Err(self.unexpected());
            }
        }
        self.expect('}')?;
        Ok(Literal::Entries(entries))
    }

    fn items(&mut self, close: char, depth: usize) -> Result<Vec<Literal>, String> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.ends(close) {
            items.push(self.literal(depth + 1)?);
            if !self.comma() && !self.ends(close) {
                return Err(self.unexpected());
            }
        }
        self.expect(close)?;
        Ok(items)
    }

    fn quoted(&mut self, quote: char) -> Result<String, String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let stop = self.rest().find([quote, '\\']).ok_or_else(|| "text without an end".to_owned())?;
            text.push_str(&self.rest()[..stop]);
            self.at += stop + 1;
            if self.text.as_bytes().get(self.at - 1) != Some(&b'\\') {
                return Ok(text);
            }
            text.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Result<char, String> {
        let escape = self.peek().ok_or_else(|| self.unexpected())?;
        self.at += escape.len_utf8();
        let digits = match escape {
            '\\' | '\'' | '"' => return Ok(escape),
            'n' => return Ok('\n'),
            't' => return Ok('\t'),
            'x' => 2,
            'u' => 4,
            _ => return Err(format!("escape `\\{escape}` at byte {}", self.at)),
        };
        let code = self.rest().get(..digits).and_then(|code| u32::from_str_radix(code, 16).ok());
        self.at += digits;
        code.and_then(char::from_u32).ok_or_else(|| format!("escape `\\{escape}` at byte {}", self.at))
    }

    fn whole(&mut self) -> Result<Literal, String> {
        let digits = self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = self.rest()[..digits].parse().map_err(|_| format!("number at byte {} is too large", self.at))?;
        self.at += digits;
        if self.peek() == Some('L') {
            self.at += 1;
        }
        Ok(Literal::Whole(number))
    }

    fn word(&mut self) -> Result<Literal, String> {
        let words = [("True", Literal::Truth(true)), ("False", Literal::Truth(false)), ("None", Literal::Nothing)];
        let found = words.into_iter().find(|(word, _)| self.rest().starts_with(word));
        let (word, literal) = found.ok_or_else(|| self.unexpected())?;
        self.at += word.len();
        Ok(literal)
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Whether the next sign is `close`; it is not taken.
    fn ends(&mut self, close: char) -> bool {
        self.space();
        self.peek() == Some(close)
    }

    fn comma(&mut self) -> bool {
        let found = self.ends(',');
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        if !self.ends(sign) {
            return Err(self.unexpected());
        }
        self.at += sign.len_utf8();
        Ok(())
    }

    fn unexpected(&self) -> String {
        match self.peek() {
            Some(sign) => format!("unexpected `{sign}` at byte {}", self.at),
            None => "ends too early".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numpy_header_is_read() {
        let header = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n").unwrap();
        assert_eq!(header.entry("descr"), Some(&Literal::Text("<f4".to_owned())));
        assert_eq!(header.entry("fortran_order"), Some(&Literal::Truth(false)));
        assert_eq!(header.entry("shape"), Some(&Literal::Items(vec![Literal::Whole(3), Literal::Whole(4)])));
    }

    #[test]
    fn text_keeps_its_quotes_escapes_and_marks() {
        let text = |source: &str| parse(source).unwrap();
        assert_eq!(text(r#""it's""#), Literal::Text("it's".to_owned()));
        assert_eq!(text(r"'it\'s \\ \x41 \u00e9'"), Literal::Text(r"it's \ A é".to_owned()));
        assert_eq!(text("u'é'"), Literal::Text("é".to_owned()));
        assert_eq!(text("(12L,)"), Literal::Items(vec![Literal::Whole(12)]));
    }

    #[test]
    fn what_is_no_literal_is_refused() {
        let deep = "(".repeat(1000);
        for wrong in [
            "",
            "{",
            "{'a'}",
            "{'a': }",
            "(1 2)",
            "'abc",
            r"'\",
            r"'\xZZ'",
            "os.system('x')",
            "1 1",
            "(1,,2)",
            "-1",
            "99999999999999999999999",
            &deep,
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
