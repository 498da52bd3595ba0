//! Pickles, as PyTorch and NumPy leave them in files: taken apart and never run.
//!
//! A pickle is a program for a stack machine. This one builds plain values only: a call stays the note of a call, a class the
//! note of its name. Values lie in one list and point at each other by number, so that sharing costs nothing and no nesting
//! can exhaust the stack; the list grows by at most one value per instruction. Texts are shared, never copied; what has no
//! content (`None`, truth values, the empty tuple) is there once; everything else is counted before it is made.

mod machine;

use std::ops::Range;
use std::sync::Arc;

use cuemark_formats::Meter;

use crate::fault::{Fault, shorten};
use machine::Machine;

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
        Machine::new(bytes, meter).run()
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
