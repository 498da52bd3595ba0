//! The stack machine that a pickle is a program for.

use std::collections::HashMap;
use std::sync::Arc;

use cuemark_formats::Meter;

use super::{Class, Id, Pickle, Value};
use crate::fault::Fault;

/// Bytes of a shared text or class beside its content.
const SHARED: usize = 48;
/// Bytes of one entry of the memo, in a table that is at times half empty and moves to a larger place.
const MEMO: usize = 64;

/// A pickle on its way from instructions to values.
pub(super) struct Machine<'a, 'm> {
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

impl<'a, 'm> Machine<'a, 'm> {
    pub(super) fn new(bytes: &'a [u8], meter: &'m Meter) -> Self {
        Self {
            length: bytes.len(),
            rest: bytes,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            plain: Plain::default(),
            meter,
        }
    }

    /// What the instructions make, and the bytes that follow them.
    pub(super) fn run(mut self) -> Result<(Pickle, &'a [u8]), Fault> {
        while !self.step()? {}
        let root = self.pop()?;
        Ok((Pickle { values: self.values, root }, self.rest))
    }
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
