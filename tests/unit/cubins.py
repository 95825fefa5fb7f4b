"""Makes cubins and static archives for tests, byte by byte: tests/unit/test_image.c compares the reader with nvcc's cubins."""
import struct


def word(form, attribute, value):
    return struct.pack("<I", form | attribute << 8 | value << 16)


def section(name, kind, offset, size, link=0, info=0):
    return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, link, info, 1, 0)


class Strings:
    def __init__(self):
        self.data = b"\0"

    def add(self, text):
        at = len(self.data)
        self.data += text + b"\0"
        return at


def cubin(sm, kernels):
    """kernels: {name: {registers, stack, shared, barriers, bounds}}. ELF ABI 8."""
    names, strings, body = Strings(), Strings(), b"\0" * 64
    symbols = [struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)]
    info, sections = b"", []

    def place(name, kind, data, link=0, about=0, size=None):
        nonlocal body
        sections.append(section(names.add(name), kind, len(body), len(data) if size is None else size, link, about))
        body += data

    first = 5  # of the kernels' sections
    for i, (name, k) in enumerate(kernels.items()):
        name = name if isinstance(name, bytes) else name.encode()
        symbols.append(struct.pack("<IBBHQQ", strings.add(name), 2, 0x10, first + 3 * i, 0, 16))
        info += word(4, 0x2F, 8) + struct.pack("<II", i + 1, k.get("registers", 32))
        info += word(4, 0x11, 8) + struct.pack("<II", i + 1, k.get("stack", 0))
    sections.append(section(0, 0, 0, 0))
    names_at = len(sections)
    sections.append(None)  # the names come last
    place(b".strtab", 3, strings.data)
    place(b".symtab", 2, b"".join(symbols), link=names_at + 1)
    place(b".nv.info", 0x70000000, info)
    for i, (name, k) in enumerate(kernels.items()):
        text = first + 3 * i
        own = word(2, 0x4C, k.get("barriers", 0))
        if k.get("bounds"):
            own += word(4, 0x05, 12) + struct.pack("<III", k["bounds"], 1, 1)
        place(b".text.k", 1, b"\0" * 16)
        place(b".nv.info.k", 0x70000000, own, about=text)
        place(b".nv.shared.k", 8, b"", about=text, size=k.get("shared", 0) + (1024 if sm >= 90 else 0))
    own_name = names.add(b".shstrtab")
    sections[names_at] = section(own_name, 3, len(body), len(names.data))
    body += names.data
    ident = b"\x7fELF" + bytes([2, 1, 1, 51, 8]) + b"\0" * 7
    header = ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, len(body), sm << 8 | 0x6000004, 64, 56, 0, 64,
                                 len(sections), names_at)
    return header + body[64:] + b"".join(sections)


def archive(*members):
    data = b"!<arch>\n"
    for member in members:
        data += b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (b"k.o/", 0, 0, 0, 0o644, len(member)) + member
        data += b"\n" * (len(member) & 1)
    return data


def plant_registers(image, before, after):
    """Changes the first kernel with `before` registers in a cubin's .nv.info."""
    at = -1
    while True:
        at = image.index(word(4, 0x2F, 8), at + 1)
        if struct.unpack_from("<I", image, at + 8)[0] == before:
            return image[: at + 8] + struct.pack("<I", after) + image[at + 12 :]
