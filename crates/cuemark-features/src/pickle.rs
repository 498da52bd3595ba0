//! Pickles, as PyTorch and NumPy leave them in files: taken apart and never run.
//!
//! A pickle is a program for a stack machine. This one builds plain values only: a call stays the note of a call, a class the
//! note of its name. Values lie in one list and point at each other by number, so that sharing costs nothing and no nesting
//! can exhaust the stack; the list grows by at most one value per instruction. Texts are shared, never copied; what has no
//! content (`None`, truth values, the empty tuple) is there once; everything else is counted before it is made.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use cuemark_formats::Meter;

use crate::fault::{Fault, shorten};

/// The number of a value.
pub(crate) type Id = usize;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// What a tensor does not need: floats, `None`.
    Other,
    Truth(bool),
    Whole(i64),
    Text(Arc<str>),
    /// Where bytes lie in the pickle.
    Bytes(Range<usize>),
    /// A class or function: `torch`, `FloatStorage`.
    Class(Arc<Class>),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    /// Something that lies outside the pickle, by its description.
    Persistent(Id),
    /// A call that Python would have made, and the state that it would have given the result.
    Call {
        class: Id,
        arguments: Id,
        state: Option<Id>,
    },
}

/// The name of a class or function.
#[derive(Debug, PartialEq)]
pub(crate) struct Class {
    pub(crate) module: Arc<str>,
    pub(crate) name: Arc<str>,
}

/// Bytes of a shared text or class beside its content.
const SHARED: usize = 48;
/// Bytes of one entry of the memo, in a table that is at times half empty and moves to a larger place.
const MEMO: usize = 64;

/// All values of one pickle, and which of them is the result.
#[derive(Debug)]
pub(crate) struct Pickle {
    values: Vec<Value>,
    pub(crate) root: Id,
}

impl Pickle {
    /// What it takes stays counted by `meter`.
    pub(crate) fn parse(bytes: &[u8], meter: &Meter) -> Result<Self, Fault> {
        Ok(Self::parse_first(bytes, meter)?.0)
    }

    /// The pickle at the start of `bytes`, and what follows it.
    pub(crate) fn parse_first<'a>(bytes: &'a [u8], meter: &Meter) -> Result<(Self, &'a [u8]), Fault> {
        let mut machine = Machine {
            length: bytes.len(),
            rest: bytes,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            plain: Plain::default(),
            meter,
        };
        while !machine.step()? {}
        let root = machine.pop()?;
        Ok((Self { values: machine.values, root }, machine.rest))
    }

    /// The first call, in the order of the file, of something that `known` does not name.
    pub(crate) fn unknown_call(&self, known: impl Fn(&str, &str) -> bool) -> Option<String> {
        self.values.iter().find_map(|value| {
            let Value::Call { class, .. } = value else { return None };
            match self.value(*class) {
                Value::Class(class) if known(&class.module, &class.name) => None,
                Value::Class(class) => Some(format!("{}.{}", shorten(&class.module), shorten(&class.name))),
                _ => Some("something without a name".to_owned()),
            }
        })
    }

    /// A call of the function or class `name`, wherever it is from: its arguments and the state of its result.
    pub(crate) fn call_of(&self, id: Id, name: &str) -> Option<(&[Id], Option<Id>)> {
        let Value::Call { class, arguments, state } = self.value(id) else { return None };
        matches!(self.value(*class), Value::Class(class) if *class.name == *name)
            .then(|| self.tuple(*arguments))
            .flatten()
            .map(|arguments| (arguments, *state))
    }

    /// The descriptions of everything that lies outside.
    pub(crate) fn persistent(&self) -> impl Iterator<Item = Id> {
        self.values.iter().filter_map(|value| if let Value::Persistent(id) = value { Some(*id) } else { None })
    }

    pub(crate) fn value(&self, id: Id) -> &Value {
        self.values.get(id).unwrap_or(&Value::Other)
    }

    pub(crate) fn text(&self, id: Id) -> Option<&str> {
        match self.value(id) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn tuple(&self, id: Id) -> Option<&[Id]> {
        match self.value(id) {
            Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn whole(&self, id: Id) -> Option<usize> {
        match self.value(id) {
            Value::Whole(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A tuple of whole numbers, such as a shape.
    pub(crate) fn wholes(&self, id: Id) -> Option<Vec<usize>> {
        self.tuple(id)?.iter().map(|item| self.whole(*item)).collect()
    }
}

struct Machine<'a, 'm> {
    /// Of the pickle and all that follows it, in bytes.
    length: usize,
    rest: &'a [u8],
    values: Vec<Value>,
    stack: Vec<Id>,
    /// Heights of the stack that `MARK` noted.
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
    plain: Plain,
    meter: &'m Meter,
}

/// The numbers of values that have no content, once they were met.
#[derive(Default)]
struct Plain {
    other: Option<Id>,
    yes: Option<Id>,
    no: Option<Id>,
}

impl Machine<'_, '_> {
    /// Carries out one instruction; true when it was the last.
    fn step(&mut self) -> Result<bool, Fault> {
        let [code] = self.take()?;
        match code {
            b'.' => return Ok(true),
            0x80 => drop(self.take::<1>()?),
            0x95 => drop(self.take::<8>()?),
            b'(' => {
                self.meter.room(&mut self.marks)?;
                self.marks.push(self.stack.len());
            }
            b'0' => drop(self.pop()?),
            b'N' => self.other()?,
            0x88 | 0x89 => self.truth(code == 0x88)?,
            b'G' => {
                self.take::<8>()?;
                self.other()?;
            }
            b'K' => {
                let [byte] = self.take()?;
                self.push(Value::Whole(byte.into()))?;
            }
            b'M' => {
                let number = u16::from_le_bytes(self.take()?);
                self.push(Value::Whole(number.into()))?;
            }
            b'J' => {
                let number = i32::from_le_bytes(self.take()?);
                self.push(Value::Whole(number.into()))?;
            }
            0x8a => self.long()?,
            b'X' | b'T' => {
                let length = u32::from_le_bytes(self.take()?);
                self.text(length.into())?;
            }
            0x8c | b'U' => {
                let [length] = self.take()?;
                self.text(length.into())?;
            }
            0x8d => {
                let length = u64::from_le_bytes(self.take()?);
                self.text(length)?;
            }
            b'C' => {
                let [length] = self.take()?;
                self.bytes(length.into())?;
            }
            b'B' => {
                let length = u32::from_le_bytes(self.take()?);
                self.bytes(length.into())?;
            }
            0x8e => {
                let length = u64::from_le_bytes(self.take()?);
                self.bytes(length)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.class(module, name)?;
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Some(Value::Text(module)), Some(Value::Text(name))) =
                    (self.values.get(module), self.values.get(name))
                else {
                    return Err("pickle names a class by what is no text".into());
                };
                let (module, name) = (Arc::clone(module), Arc::clone(name));
                self.class(module, name)?;
            }
            b'q' => {
                let [slot] = self.take()?;
                self.remember(slot.into())?;
            }
            b'r' => {
                let slot = u32::from_le_bytes(self.take()?);
                self.remember(slot.into())?;
            }
            0x94 => self.remember(self.memo.len() as u64)?,
            b'h' => {
                let [slot] = self.take()?;
                self.recall(slot.into())?;
            }
            b'j' => {
                let slot = u32::from_le_bytes(self.take()?);
                self.recall(slot.into())?;
            }
            b'}' => self.push(Value::Dict(Vec::new()))?,
            b']' => self.push(Value::List(Vec::new()))?,
            b')' => self.push(Value::Tuple(Vec::new()))?,
            b't' => {
                let items = self.pop_to_mark()?;
                self.push(Value::Tuple(items))?;
            }
            0x85..=0x87 => {
                let height = self.stack.len().checked_sub(usize::from(code - 0x84)).ok_or("stack runs empty")?;
                let items = self.split_off(height)?;
                self.push(Value::Tuple(items))?;
            }
            b'Q' => {
                let description = self.pop()?;
                self.push(Value::Persistent(description))?;
            }
            b'R' | 0x81 => self.call()?,
            b'b' => self.build()?,
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.append(items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set(&items)?;
            }
            other => return Err(format!("pickle instruction {other:#04x} is not one that tensors need").into()),
        }
        Ok(false)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or("pickle is cut short")?;
        self.rest = rest;
        Ok(*taken)
    }

    fn text(&mut self, length: u64) -> Result<(), Fault> {
        let (text, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length))
            .ok_or("pickle is cut short")?;
        self.rest = rest;
        let text = std::str::from_utf8(text).map_err(|_| "pickle holds text that is not UTF-8")?;
        self.meter.charge((text.len() + SHARED) as u64)?;
        self.push(Value::Text(text.into()))?;
        Ok(())
    }

    fn bytes(&mut self, length: u64) -> Result<(), Fault> {
        let start = self.length - self.rest.len();
        let (taken, rest) = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length))
            .ok_or("pickle is cut short")?;
        self.rest = rest;
        self.push(Value::Bytes(start..start + taken.len()))?;
        Ok(())
    }

    fn line(&mut self) -> Result<Arc<str>, Fault> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').ok_or("pickle is cut short")?;
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        self.meter.charge((line.len() + SHARED) as u64)?;
        Ok(String::from_utf8_lossy(line).into())
    }

    /// A whole number of up to eight bytes; longer ones cannot be a size.
    fn long(&mut self) -> Result<(), Fault> {
        let [length] = self.take()?;
        let (bytes, rest) = self.rest.split_at_checked(length.into()).ok_or("pickle is cut short")?;
        self.rest = rest;
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut whole = [if negative { 0xff } else { 0 }; 8];
        match whole.get_mut(..bytes.len()) {
            Some(low) => {
                low.copy_from_slice(bytes);
                self.push(Value::Whole(i64::from_le_bytes(whole)))?;
            }
            None => self.other()?,
        }
        Ok(())
    }

    fn push(&mut self, value: Value) -> Result<(), Fault> {
        self.meter.room(&mut self.values)?;
        self.values.push(value);
        self.put(self.values.len() - 1)
    }

    fn put(&mut self, id: Id) -> Result<(), Fault> {
        self.meter.room(&mut self.stack)?;
        self.stack.push(id);
        Ok(())
    }

    fn other(&mut self) -> Result<(), Fault> {
        if let Some(id) = self.plain.other {
            return self.put(id);
        }
        self.plain.other = Some(self.values.len());
        self.push(Value::Other)
    }

    fn truth(&mut self, truth: bool) -> Result<(), Fault> {
        let known = if truth { &mut self.plain.yes } else { &mut self.plain.no };
        if let Some(id) = *known {
            return self.put(id);
        }
        *known = Some(self.values.len());
        self.push(Value::Truth(truth))
    }

    /// Counted with its texts although it shares them: whoever speaks of a class copies both, and no honest name is long.
    fn class(&mut self, module: Arc<str>, name: Arc<str>) -> Result<(), Fault> {
        self.meter.charge((SHARED + module.len() + name.len()) as u64)?;
        self.push(Value::Class(Arc::new(Class { module, name })))
    }

    fn pop(&mut self) -> Result<Id, Fault> {
        self.stack.pop().ok_or_else(|| "stack runs empty".into())
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Id>, Fault> {
        let height = self.marks.pop().filter(|height| *height <= self.stack.len()).ok_or("stack has no mark")?;
        self.split_off(height)
    }

    fn split_off(&mut self, height: usize) -> Result<Vec<Id>, Fault> {
        // The empty one takes nothing, and `split_off` at the bottom would take the whole stack's room along.
        let items = self.stack.get(height..).unwrap_or_default();
        self.meter.charge(if items.is_empty() { 0 } else { size_of_val(items) + SHARED } as u64)?;
        let items = items.to_vec();
        self.stack.truncate(height);
        Ok(items)
    }

    fn remember(&mut self, slot: u64) -> Result<(), Fault> {
        let top = *self.stack.last().ok_or("stack runs empty")?;
        if !self.memo.contains_key(&slot) {
            self.meter.charge(MEMO as u64)?;
        }
        self.memo.insert(slot, top);
        Ok(())
    }

    fn recall(&mut self, slot: u64) -> Result<(), Fault> {
        let id = *self.memo.get(&slot).ok_or("pickle recalls what it never kept")?;
        self.put(id)
    }

    fn call(&mut self) -> Result<(), Fault> {
        let (arguments, class) = (self.pop()?, self.pop()?);
        let ordered = matches!(self.values.get(class), Some(Value::Class(class))
            if &*class.module == "collections" && &*class.name == "OrderedDict");
        self.push(if ordered { Value::Dict(Vec::new()) } else { Value::Call { class, arguments, state: None } })
    }

    /// Python would hand the state to the object; we keep a note of it where there is a note of the object.
    fn build(&mut self) -> Result<(), Fault> {
        let new = self.pop()?;
        let top = self.stack.last().and_then(|id| self.values.get_mut(*id)).ok_or("stack runs empty")?;
        if let Value::Call { state, .. } = top {
            *state = Some(new);
        }
        Ok(())
    }

    fn append(&mut self, items: Vec<Id>) -> Result<(), Fault> {
        let top = self.stack.last().and_then(|id| self.values.get_mut(*id));
        let Some(Value::List(list)) = top else { return Err("pickle appends to what is no list".into()) };
        for item in items {
            self.meter.room(list)?;
            list.push(item);
        }
        Ok(())
    }

    fn set(&mut self, items: &[Id]) -> Result<(), Fault> {
        let top = self.stack.last().and_then(|id| self.values.get_mut(*id));
        let (pairs, []) = items.as_chunks::<2>() else { return Err("pickle sets half an entry".into()) };
        match top {
            Some(Value::Dict(entries)) => {
                for [key, value] in pairs {
                    self.meter.room(entries)?;
                    entries.push((*key, *value));
                }
            }
            // Entries of an object that we only take a note of.
            Some(Value::Call { .. }) => {}
            _ => return Err("pickle sets an entry of what is no dictionary".into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_of_numbers_is_read() {
        // pickle.dumps({'a': (1, 300), 'b': -1}, protocol=2), written out by hand.
        let bytes =
            b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01K\x01M\x2c\x01\x86q\x02X\x01\x00\x00\x00bq\x03J\xff\xff\xff\xffu.";
        let pickle = Pickle::parse(bytes, &Meter::default()).unwrap();
        let Value::Dict(entries) = pickle.value(pickle.root) else { panic!("{pickle:?}") };
        let [(a, numbers), (b, minus)] = entries.as_slice() else { panic!("{entries:?}") };
        assert_eq!((pickle.text(*a), pickle.text(*b)), (Some("a"), Some("b")));
        assert_eq!(pickle.wholes(*numbers), Some(vec![1, 300]));
        assert_eq!(pickle.value(*minus), &Value::Whole(-1));
    }

    #[test]
    fn a_call_is_noted_and_not_made() {
        let pickle = Pickle::parse(b"cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", &Meter::default()).unwrap();
        let Value::Call { class, .. } = pickle.value(pickle.root) else { panic!("{pickle:?}") };
        assert_eq!(pickle.value(*class), &Value::Class(Arc::new(Class { module: "os".into(), name: "system".into() })));
        assert_eq!(pickle.unknown_call(|module, _| module == "torch"), Some("os.system".to_owned()));
        assert_eq!(pickle.unknown_call(|module, name| (module, name) == ("os", "system")), None);
    }

    #[test]
    fn bytes_and_states_are_kept_and_what_follows_is_handed_back() {
        // f(b'ab') with the state True, and three bytes that are no part of the pickle.
        let bytes = b"\x80\x04cm\nf\nC\x02ab\x85R\x88b.xyz";
        let (pickle, rest) = Pickle::parse_first(bytes, &Meter::default()).unwrap();
        assert_eq!(rest, b"xyz");
        let (arguments, state) = pickle.call_of(pickle.root, "f").unwrap();
        let Value::Bytes(place) = pickle.value(arguments[0]) else { panic!("{pickle:?}") };
        assert_eq!(&bytes[place.clone()], b"ab");
        assert_eq!(pickle.value(state.unwrap()), &Value::Truth(true));
        assert!(pickle.call_of(pickle.root, "g").is_none());
    }

    #[test]
    fn hostile_pickles_are_refused_or_stay_small() {
        for bytes in [
            &b""[..],
            b".",
            b"\x85.",
            b"u.",
            b"(}s.",
            b"h\x07.",
            b"X\xff\xff\xff\xffabc.",
            b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
            b"\x8a\xff\x00.",
            b"]N(K\x01u.",
            b"\xfe.",
        ] {
            assert!(Pickle::parse(bytes, &Meter::default()).is_err(), "{bytes:?}");
        }
        // Nested a hundred thousand deep, and doubled a hundred times over: neither costs more than its own bytes.
        let mut deep = vec![b')'];
        deep.extend(std::iter::repeat_n(0x85, 100_000));
        deep.push(b'.');
        assert_eq!(Pickle::parse(&deep, &Meter::default()).unwrap().values.len(), 100_001);
        let mut doubled = b")q\x00".to_vec();
        (0..100).for_each(|_| doubled.extend(b"h\x00h\x00\x86q\x00"));
        doubled.push(b'.');
        assert_eq!(Pickle::parse(&doubled, &Meter::default()).unwrap().values.len(), 101);
    }

    #[test]
    fn texts_are_shared_and_what_is_made_is_counted() {
        // A text of 1 MB in the memo, and four thousand classes of that name.
        let mut pickle = b"X\x00\x00\x10\x00".to_vec();
        pickle.extend(std::iter::repeat_n(b'a', 1 << 20));
        pickle.extend(b"q\x00");
        (0..4_000).for_each(|_| pickle.extend(b"h\x00h\x00\x93"));
        pickle.push(b'.');
        let budget = |bytes| Meter::new(cuemark_formats::Budget::new(bytes));
        assert!(matches!(Pickle::parse(&pickle, &budget(512 << 20)), Err(Fault::Memory(_))));
        // A million times nothing is one value, and a stack that is counted.
        let mut nothing = vec![b'N'; 1 << 20];
        nothing.push(b'.');
        assert_eq!(Pickle::parse(&nothing, &budget(13 << 20)).unwrap().values.len(), 1);
        assert!(matches!(Pickle::parse(&nothing, &budget(7 << 20)), Err(Fault::Memory(_))));
        // So is the memo.
        let mut kept = b"N".to_vec();
        kept.extend(std::iter::repeat_n(0x94, 1 << 20));
        kept.push(b'.');
        assert!(matches!(Pickle::parse(&kept, &budget(16 << 20)), Err(Fault::Memory(_))));
    }
}
