"""Makes haigha 0.9.0, as lib2to3 converts it, run on Python 3. Import this before haigha.

haigha was written for Python 2, where text and bytes are one type, and lib2to3 converts syntax
only. Everything here makes up for that difference and for nothing else: no frame is sent, awaited
or understood differently. A name set in a haigha module hides the builtin of that name there.
"""

# The reader and writer come first: the frames take their methods as they are when imported.
import haigha.reader
import haigha.writer


class Buffer(bytes):
    """Python 2's `buffer`: a string, whose items are strings of one byte."""

    def __new__(cls, source, offset=0, size=None):
        end = None if size is None else offset + size
        return super().__new__(cls, memoryview(source)[offset:end])

    def __getitem__(self, index):
        if isinstance(index, int):
            index = slice(index, index + 1)
        return super().__getitem__(index)


class ByteArray(bytearray):
    """Python 2's `bytearray`, which appends strings of one byte as well as integers."""

    def append(self, item):
        super().append(item if isinstance(item, int) else ord(item))


def text(value):
    """What is a native string in Python 2, whose haigha users compare with literals."""
    return value.decode("utf-8")


Reader = haigha.reader.Reader
read_shortstr = Reader.read_shortstr
field_shortstr = Reader._field_shortstr
field_longstr = Reader._field_longstr

haigha.reader.buffer = Buffer
haigha.reader.str = bytes  # what a socket gives is a `str` in Python 2
Reader.__str__ = lambda self: bytes(self.buffer()).hex()
Reader.read_shortstr = lambda self: text(read_shortstr(self))
Reader._field_shortstr = lambda self: text(field_shortstr(self))
# The letters of field types are looked up as items of a buffer.
Reader.field_type_map = {
    letter.encode(): (lambda self: text(field_longstr(self))) if letter == "S" else read
    for letter, read in Reader.field_type_map.items()
}

haigha.writer.bytearray = ByteArray
haigha.writer.Writer.__str__ = lambda self: self.buffer().hex()

import haigha.connection
import haigha.message

haigha.connection.PROTOCOL_HEADER = haigha.connection.PROTOCOL_HEADER.encode("latin-1")
haigha.connection.bytearray = ByteArray
haigha.message.bytearray = (bytes, bytearray)  # the types, beside `str`, that a body may have
