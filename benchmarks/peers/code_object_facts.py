"""What a launcher needs from an AMDGPU code object: its metadata note and the start state of a kernel descriptor.

Layouts: LLVM's AMDGPU usage guide, "Code Object V5 Metadata" (a msgpack map in an ELF note) and "Kernel Descriptor".
"""
from __future__ import annotations

NOTE, SYMBOLS = 7, (2, 11)
METADATA_NOTE = 32
# user SGPRs in the order of their enable bits: name, registers
USER_SGPRS = (("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_ptr", 2),
              ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1))


def unsigned(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at:at + size], "little")


class MessagePack:
    """A reader of the msgpack subset that metadata uses: maps, arrays, strings, integers, booleans, nil."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def number(self, size: int, signed: bool = False) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size:self.at], "big", signed=signed)

    def text(self, size: int) -> str:
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self):
        tag = self.number(1)
        if tag < 0x80:
            return tag
        if tag >= 0xE0:
            return tag - 256
        if tag < 0x90 or tag in (0xDE, 0xDF):
            count = tag & 15 if tag < 0x90 else self.number(2 << (tag - 0xDE))
            return {self.value(): self.value() for _ in range(count)}
        if tag < 0xA0 or tag in (0xDC, 0xDD):
            count = tag & 15 if tag < 0xA0 else self.number(2 << (tag - 0xDC))
            return [self.value() for _ in range(count)]
        if tag < 0xC0 or tag in (0xD9, 0xDA, 0xDB):
            return self.text(tag & 31 if tag < 0xC0 else self.number(1 << (tag - 0xD9)))
        if tag in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[tag]
        if 0xCC <= tag <= 0xD3:
            return self.number(1 << (tag - 0xCC & 3), signed=tag >= 0xD0)
        raise ValueError(f"msgpack tag {tag:#x}")


def sections(elf: bytes) -> list[dict]:
    start, size, count = unsigned(elf, 40, 8), unsigned(elf, 58, 2), unsigned(elf, 60, 2)
    fields = dict(type=(4, 4), address=(16, 8), offset=(24, 8), size=(32, 8), link=(40, 4))
    return [{name: unsigned(elf, start + n * size + at, width) for name, (at, width) in fields.items()}
            for n in range(count)]


def metadata(elf: bytes) -> dict:
    for section in sections(elf):
        at, end = section["offset"], section["offset"] + section["size"]
        while section["type"] == NOTE and at + 12 <= end:
            name_bytes, bytes_, kind = (unsigned(elf, at + n, 4) for n in (0, 4, 8))
            start = at + 12 + (name_bytes + 3) // 4 * 4
            if kind == METADATA_NOTE:
                return MessagePack(elf[start:start + bytes_]).value()
            at = start + (bytes_ + 3) // 4 * 4
    raise ValueError("no amdhsa metadata note")


def descriptor_offset(elf: bytes, kernel: str) -> int:
    """File offset of the 64-byte descriptor `kernel`.kd."""
    table = sections(elf)
    for section in (s for s in table if s["type"] in SYMBOLS):
        strings = table[section["link"]]["offset"]
        for entry in range(section["offset"], section["offset"] + section["size"], 24):
            name = strings + unsigned(elf, entry, 4)
            if elf[name:elf.index(b"\0", name)].decode() != kernel + ".kd":
                continue
            address = unsigned(elf, entry + 8, 8)
            home = next(s for s in table if s["address"] and s["address"] <= address < s["address"] + s["size"])
            return home["offset"] + address - home["address"]
    raise ValueError(f"no descriptor of {kernel}")


def start_state(elf: bytes, kernel: str) -> dict:
    """Where a wave finds its inputs: the first SGPR of each, preloaded dwords, axes of the work-item id."""
    at = descriptor_offset(elf, kernel)
    resource2, properties, preload = unsigned(elf, at + 52, 4), unsigned(elf, at + 56, 2), unsigned(elf, at + 58, 2)
    registers, following = {}, 0
    for bit, (name, count) in enumerate(USER_SGPRS):
        if properties >> bit & 1:
            registers[name] = following
            following += count
    if preload & 127:
        registers["kernarg_preload"] = following
        following += preload & 127
    for axis in range(3):
        if resource2 >> (7 + axis) & 1:
            registers["workgroup_id_" + "xyz"[axis]] = following
            following += 1
    return dict(properties=properties, preload_dwords=preload & 127, preload_offset_dwords=preload >> 7, sgprs=registers,
                work_item_id_axes=(resource2 >> 11 & 3) + 1)
