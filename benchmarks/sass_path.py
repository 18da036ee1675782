#!/usr/bin/env python3
"""How many instructions a thread issues on its way through kernels whose arguments are known: branches are
taken as integers say that are followed along the way. Predicated instructions count whether they do
anything or not.

    sass_path.py LIST

A line of LIST: what it is, a cubin, the kernel's arguments (of eight bytes each; - for what is not known,
as pointers), the most times the instructions of the line that it is compared with and the number of that
line, or the most instructions and -. Needs nvdisasm, as sass_estimate.py does.

Where a branch depends on floats, these are taken to be usual: neither tiny nor huge, no infinities and no
NaNs, so that divisions and roots take their short ways."""
import re
import sys

sys.dont_write_bytecode = True  # nothing beside the sources
import sass_estimate  # noqa: E402

MASK = (1 << 32) - 1
FIRST_ARGUMENT = 0x210  # of the constant bank, on sm_90
THREAD = 1  # of which the way is followed; of block 1
MOST = 1 << 20


def signed(x):
    return x - (1 << 32) if x & 1 << 31 else x


COMPARE = {"GE": lambda a, b: a >= b, "GT": lambda a, b: a > b, "LE": lambda a, b: a <= b,
           "LT": lambda a, b: a < b, "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b}


class Thread:
    def __init__(self, constants):
        self.constants, self.registers, self.predicates = constants, {}, {"PT": True, "UPT": True}

    def value(self, text):
        """None where nothing is known."""
        text = text.strip().replace(".reuse", "")
        negative, inverted, text = text.startswith("-"), text.startswith("~"), text.lstrip("-~")
        if text in ("RZ", "URZ"):
            known = 0
        elif re.fullmatch(r"0x[0-9a-f]+|\d+", text):
            known = int(text, 0)
        elif found := re.fullmatch(r"c\[0x0\]\[(0x[0-9a-f]+)\]", text):
            known = self.constants.get(int(found[1], 16))
        elif found := re.fullmatch(r"(U?R\d+)(\.\w+)?", text):
            known = self.registers.get(found[1])
        else:
            known = None
        if known is None:
            return None
        return (-known if negative else ~known if inverted else known) & MASK

    def holds(self, text):
        known = self.predicates.get(text.lstrip("!").strip())
        return None if known is None else known != text.strip().startswith("!")

    def goes(self, one):
        """Whether a branch or an exit is taken; None where that is not known."""
        parts = [one.predicate.lstrip("@")] if one.predicate else []
        parts += [p for p in one.parts if re.fullmatch(r"!?U?P[T\d]", p)]
        known = [self.holds(p) for p in parts]
        return False if False in known else None if None in known else True

    # ---- what an instruction leaves

    def run(self, one):
        if one.predicate and self.holds(one.predicate.lstrip("@")) is False or not one.parts:
            return
        if one.unit in sass_estimate.NO_RESULT and one.base not in ("ISETP", "UISETP", "PLOP3", "UPLOP3"):
            return
        to, sources = self.operands(one)
        for name, known in zip(to, self.results(one, to, sources)):
            if name not in ("PT", "UPT"):
                (self.predicates if "P" in name else self.registers)[name] = known

    @staticmethod
    def operands(one):
        """The names of results, predicates first as they stand; and the other operands."""
        count = 0
        while count < len(one.parts) and re.fullmatch(r"U?P[T\d]", one.parts[count]):
            count += 1
        if one.base in ("ISETP", "UISETP", "FSETP", "DSETP", "FCHK", "PLOP3", "UPLOP3", "HSETP2"):
            return one.parts[:min(count, 2)], one.parts[count:]
        to, sources = one.parts[:count], one.parts[count:]
        if found := re.fullmatch(r"(U?R)(\d+)(\.\w+)*", sources[0].replace(".reuse", "")) if sources else None:
            width = one.width() // 4 if one.unit in ("LDG", "LDS") else 2 if re.search(r"WIDE|64", one.name) else 1
            to = to + [f"{found[1]}{int(found[2]) + n}" for n in range(max(1, width))]
            sources = sources[1:]
        return to, sources

    def results(self, one, to, sources):
        name = one.name.lstrip("U") if one.base.startswith("U") else one.name
        base, values = name.split(".")[0], [self.value(s) for s in sources]
        carries = re.search(r"\.X\b|\.HI\b|WIDE|\.EX\b", name)
        if base == "ISETP":
            return [self.compared(name, values, sources)] + [None] * (len(to) - 1)
        if base in ("FSETP", "DSETP", "FCHK"):
            return [{"GEU": True, "NAN": False, "FCHK": False}.get((name + ".").split(".")[1] or base)] * len(to)
        if base == "LDC":
            found = re.search(r"c\[0x0\]\[(0x[0-9a-f]+)\]", one.operands)
            at = int(found[1], 16) if found else None
            return [self.constants.get(at + 4 * n) if found else None for n in range(len(to))]
        known = None
        if base in ("S2R", "S2UR"):
            known = {"SR_TID.X": THREAD, "SR_CTAID.X": 1}.get(sources[0])
        elif base in ("MOV", "R2UR"):
            known = values[0]
        elif base == "SHF":
            known = self.shifted(name, values)
        elif base == "LOP3":
            known = self.logic(sources)
            return [None if known is None else known != 0 if "P" in r else known for r in to]
        elif base == "SEL":
            which = self.holds(sources[2])
            known = None if which is None else values[0] if which else values[1]
        elif base in ("IMNMX", "VIMNMX") and None not in values[:2]:
            pick = min if self.holds(sources[2]) else max
            known = pick(values[:2], key=signed if ".U32" not in name else None)
        elif not carries and base in ("IADD3", "VIADD", "IMAD", "LEA"):
            known = self.added(base, name, values)
        return [known if "P" not in r and n == len(to) - 1 else None for n, r in enumerate(to)]

    def compared(self, name, values, sources):
        result = None
        if None not in values[:2]:
            a, b = values[:2] if ".U32" in name else map(signed, values[:2])
            result = COMPARE[name.split(".")[1]](a, b)
            if ".EX" in name and a == b:  # of equal upper halves the lower ones tell
                result = self.holds(sources[3])
        other = self.holds(sources[2])
        if ".OR" in name:
            return True if True in (result, other) else None if None in (result, other) else False
        return False if False in (result, other) else None if None in (result, other) else True

    @staticmethod
    def shifted(name, values):
        low, by, high = values[:3]
        if ".L" in name:
            return None if None in (low, by) else low << by & MASK
        x = high if ".HI" in name else low
        return None if None in (x, by) else ((signed(x) if ".S32" in name else x) >> by) & MASK

    def logic(self, sources):
        """a, b, c and the table of what their bits give."""
        table = next(n for n, s in enumerate(sources) if n >= 3 and re.fullmatch(r"0x[0-9a-f]+", s))
        a, b, c = map(self.value, sources[table - 3:table])
        bits, result = int(sources[table], 16), 0
        c = 0 if bits in (0xc0, 0xfc, 0x3c) else c
        if None in (a, b, c):
            return None
        for n in range(8):
            if bits >> n & 1:
                result |= (a if n & 4 else ~a) & (b if n & 2 else ~b) & (c if n & 1 else ~c)
        return result & MASK

    @staticmethod
    def added(base, name, values):
        if base == "IMAD" and ".MOV" in name:
            return values[2]
        if base == "IMAD" and 0 in values[:2]:
            return values[2]
        if None in values[:3]:
            return None
        a, b, c = (values + [0, 0])[:3]
        return (a * b + c if base == "IMAD" else (a << c) + b if base == "LEA" else a + b + c) & MASK


def instructions(path, nvdisasm, arguments):
    """Issued on the way of a thread that is given these."""
    code, labels = next(iter(sass_estimate.disassemble(path, nvdisasm).values()))
    constants = {}
    for n, x in enumerate(arguments):
        if x is not None:
            constants[FIRST_ARGUMENT + 8 * n], constants[FIRST_ARGUMENT + 8 * n + 4] = x & MASK, x >> 32
    thread, at, count = Thread(constants), 0, 0
    while at < len(code) and count < MOST:
        one, count = code[at], count + 1
        at += 1
        goes = thread.goes(one) if one.base in ("EXIT", "BRA", "BRX") else None
        if one.base == "EXIT" and goes is not False:
            if goes is None:
                sys.exit(f"sass_path.py: {path}: whether the thread ends nobody knows")
            return count
        if one.base in ("BRA", "BRX") and ".DIV" not in one.name and ".CONV" not in one.name:
            named = re.search(r"\.L_\w+", one.operands)
            if one.base == "BRX" or not named:
                sys.exit(f"sass_path.py: {path}: a branch to where registers say")
            if goes is not False:  # of floats: the short way
                at = labels[named[0]]
        elif one.base not in ("EXIT", "BRA", "BRX"):
            thread.run(one)
    sys.exit(f"sass_path.py: {path}: the way has no end")


def main():
    nvdisasm = sass_estimate.find_nvdisasm()
    if not nvdisasm:
        sys.exit("sass_path.py: no nvdisasm: scripts/setup --nvdisasm fetches one")
    counts, worse = [], 0
    for line in open(sys.argv[1]):
        what, path, arguments, most, other = line.rstrip("\n").split("\t")
        count = instructions(path, nvdisasm, [None if a == "-" else int(a) for a in arguments.split(",")])
        counts.append(count)
        text = f"{what:58} {count:6,}"
        if other != "-":
            ratio = count / counts[int(other)]
            text += f"   {ratio:.2f} of {counts[int(other)]:,}, aim <= {most}"
            worse += ratio > float(most)
        elif most != "-":
            text += f"   aim <= {most}"
            worse += count > int(most)
        print(text)
    print(f"{worse} behind their aims")
    return 0


if __name__ == "__main__":
    sys.exit(main())
