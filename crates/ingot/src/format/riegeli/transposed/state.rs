//! What a state of the machine does, by the tag in the layout.

use crate::format::varint;
use crate::format::{Violation, bail};

/// Tags that do not belong to a field.
pub mod tag {
    /// Does nothing.
    pub const NOTHING: u32 = 0;
    /// A record that is not a protocol buffer, from a buffer.
    pub const OPAQUE: u32 = 1;
    /// The beginning of a submessage: its tag and its length.
    pub const MESSAGE_START: u32 = 2;
    /// The beginning of a record.
    pub const RECORD_START: u32 = 3;
    /// The least tag of a field.
    pub const FIELD_MIN: u32 = 8;
    /// What the tag of a submessage has in place of [`super::wire_type::BYTES`] where the
    /// submessage ends.
    pub const MESSAGE_END: u32 = 6;
}

/// The low three bits of a field's tag.
pub mod wire_type {
    pub const VARINT: u32 = 0;
    pub const FIXED64: u32 = 1;
    pub const BYTES: u32 = 2;
    pub const GROUP_START: u32 = 3;
    pub const GROUP_END: u32 = 4;
    pub const FIXED32: u32 = 5;
}

/// The first subtype of a varint that encodes its value, which is up to 127.
pub const INLINE: u8 = varint::LEN_MAX as u8;

/// What a state does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Puts an opaque record from the buffer, as long as the last buffer says.
    Opaque,
    /// Puts tag and length of the submessage that ended last.
    MessageStart,
    /// Completes a record.
    RecordStart,
    /// Remembers where a submessage ends.
    MessageEnd,
    /// Puts a varint of this many bytes; in the buffer they lack their highest bits.
    Varint(u8),
    /// Puts this many bytes of the buffer.
    Fixed(u8),
    /// Puts bytes of the buffer that begin with their length.
    Bytes,
    /// Puts the literal alone.
    Literal,
}

/// A state of the machine.
#[derive(Debug, Clone, Copy)]
pub struct State {
    pub action: Action,
    /// Whether the state at `next` always follows.
    pub implicit: bool,
    /// The tag of the field, perhaps with its value.
    literal: [u8; 6],
    literal_len: u8,
    /// Where the values are, if the action takes any.
    pub buffer: u32,
    /// The first of the states that may follow.
    pub next: u32,
}

impl State {
    /// Returns the state with this tag. A varint still needs its subtype.
    pub fn new(tag: u32) -> Result<State, Violation> {
        let (action, literal) = match (tag, tag % 8) {
            (tag::NOTHING, _) => (Action::Nothing, None),
            (tag::OPAQUE, _) => (Action::Opaque, None),
            (tag::MESSAGE_START, _) => (Action::MessageStart, None),
            (tag::RECORD_START, _) => (Action::RecordStart, None),
            (tag::FIELD_MIN.., wire_type::VARINT) => (Action::Varint(1), Some(tag)),
            (tag::FIELD_MIN.., wire_type::FIXED64) => (Action::Fixed(8), Some(tag)),
            (tag::FIELD_MIN.., wire_type::FIXED32) => (Action::Fixed(4), Some(tag)),
            (tag::FIELD_MIN.., wire_type::BYTES) => (Action::Bytes, Some(tag)),
            (tag::FIELD_MIN.., wire_type::GROUP_START | wire_type::GROUP_END) => {
                (Action::Literal, Some(tag))
            }
            (tag::FIELD_MIN.., tag::MESSAGE_END) => {
                (Action::MessageEnd, Some(tag - tag::MESSAGE_END + wire_type::BYTES))
            }
            _ => bail!("a state with the tag {tag}"),
        };
        let mut state =
            State { action, implicit: false, literal: [0; 6], literal_len: 0, buffer: 0, next: 0 };
        let mut rest = literal;
        while let Some(value) = rest {
            rest = Some(value >> 7).filter(|&more| more > 0);
            state.extend(value as u8 & 0x7f | u8::from(rest.is_some()) << 7);
        }
        Ok(state)
    }

    fn extend(&mut self, byte: u8) {
        self.literal[usize::from(self.literal_len)] = byte;
        self.literal_len += 1;
    }

    /// Says of a varint how long it is, or what its value is.
    pub fn refine(&mut self, subtype: u8) -> Result<(), Violation> {
        match subtype {
            ..INLINE => self.action = Action::Varint(subtype + 1),
            INLINE..=137 => {
                self.action = Action::Literal;
                self.extend(subtype - INLINE);
            }
            _ => bail!("a varint of subtype {subtype}"),
        }
        Ok(())
    }

    /// Returns what is put without a buffer.
    #[inline]
    pub fn literal(&self) -> &[u8] {
        &self.literal[..usize::from(self.literal_len)]
    }

    /// Whether the state takes bytes from a buffer.
    pub fn has_buffer(&self) -> bool {
        matches!(self.action, Action::Opaque | Action::Varint(_) | Action::Fixed(_) | Action::Bytes)
    }
}
