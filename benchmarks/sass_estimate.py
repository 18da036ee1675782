#!/usr/bin/env python3
"""What a cubin's machine code says of a kernel's speed, for kernels of any compiler: no model, facts.

    sass_estimate.py CUBIN... [--json] [--kernel PART] [--shared BYTES] [--threads N]

Needs nvdisasm: --nvdisasm, $PALLADIUM_NVDISASM, or PATH. Of each kernel, and of its main loop:

instructions   by unit, of an iteration of the loop's text
per tile       instructions beside MMAs that all warps which multiply issue for 128 x 256 x 64
               multiply-adds: `straight` counts the loop's whole text, `trip` the way through it that
               has most MMAs, and of these ways the one with the fewest instructions
copies         what an iteration moves from global memory: bytes, and how (TMA, cp.async, LDG, of which
               those on the way of `trip` count, and each thread's bytes, though several take the same)
slots, ahead   into how many places of shared memory it copies in turn, and for how many of these
               copies are in flight, or have landed, while an iteration goes over into the next; of a
               loop the least of those copies that move an eighth of its bytes or more
awaited        bytes whose copy is awaited in the iteration that begins it
waits          products of wgmma that are left in flight at each wait for them
local          accesses of local memory (spills), of the loop and of all the text
left out       products of wgmma that an assembler took for others: they stand there without operands
blocks         on a multiprocessor at once, by registers, shared memory and threads

The main loop is the innermost loop with the most MMAs (of equals the shorter); without MMAs the
innermost that loads most; else the kernel's whole text. Text that only spins on a barrier, beyond a
loop's last branch back, is not counted. A loop without MMAs that copies for the main loop is its
producer, whose instructions are not counted to it."""
import argparse
import collections
import json
import os
import re
import shutil
import struct
import subprocess
import sys

TILE = 128 * 256 * 64

# Units by names up to the first dot; the first pattern that fits decides.
UNITS = [(unit, re.compile(f"^(?:{pattern})$")) for unit, pattern in [
    ("HGMMA", r"[HIQB]GMMA"),
    ("HMMA", r"[HIQDB]MMA"),
    ("TMA", r"UTMA\w+|UBLKCP|UBLKPF|UBLKRED"),
    ("LDGSTS", r"LDGSTS"),
    ("LDG", r"LDG"),
    ("STG", r"STG"),
    ("LDSM", r"LDSM"),
    ("STSM", r"STSM|MOVM"),
    ("LDS", r"LDS"),
    ("STS", r"STS"),
    ("local", r"LDL|STL"),
    ("atomics", r"ATOM\w*|RED\w?"),
    ("barriers", r"BAR|SYNCS|UCGABAR\w*|DEPBAR|LDGDEPBAR|ARRIVES|MEMBAR|FENCE|ERRBAR|CCTL|NANOSLEEP"),
    ("warpgroup", r"WARPGROUP\w*|USETMAXREG"),
    ("shuffles", r"SHFL|VOTEU?|ELECT|MATCH|C?REDUX"),
    ("MUFU", r"MUFU"),
    ("FP32", r"FFMA2?|FADD|FMUL|FMNMX|FSEL|FSETP?|FCHK|FSWZADD"),
    ("FP16", r"H\w+2(_MMA)?"),
    ("convert", r"F2F\w*|F2I|I2F\w*|I2FP|FRND|I2I\w*"),
    ("integer", r"IMAD|IADD3?X?|LEA|LOP3?|VIADD\w*|SHF|SHL|SHR|IABS|V?IMNMX\w*|SEL|PRMT|FLO|POPC|SGXT|BMSK"
                r"|BREV|IDP|VABSDIFF\w*"),
    ("move", r"MOV|CS2R|S2U?R|LDC|R2UR|P2R|R2P"),
    ("control", r"U?ISETP|U?PLOP3|USETP|BRA|BRX|JMP|JMX|BSSY|BSYNC|EXIT|CALL|RET|WARPSYNC|BREAK|YIELD|NOP|BPT"
                r"|PREEXIT|BMOV|KILL|RPCMOV"),
    ("uniform", r"U\w+"),
    ("other", r".*"),
]]
MMAS = ("HGMMA", "HMMA")
NO_RESULT = ("STG", "STS", "STSM", "local", "LDGSTS", "TMA", "barriers", "warpgroup", "control", "atomics")
COPIES = ("TMA", "LDGSTS", "LDG")

# Of a multiprocessor: registers, bytes of shared memory (a block takes 1 KiB more than it asks for),
# threads, blocks.
MACHINES = {80: (65536, 164 << 10, 2048, 32), 86: (65536, 100 << 10, 1536, 16), 89: (65536, 100 << 10, 1536, 24),
            90: (65536, 228 << 10, 2048, 32), 100: (65536, 228 << 10, 2048, 32),
            120: (65536, 100 << 10, 1536, 24)}


# ---- the text

class Instruction:
    def __init__(self, predicate, name, operands):
        self.predicate, self.name, self.operands = predicate, name, operands
        self.base = name.split(".")[0]
        self.unit = next(unit for unit, pattern in UNITS if pattern.match(self.base))
        self.parts = [o.strip() for o in operands.split(",")] if operands else []

    def width(self):
        """Bytes that a thread moves."""
        for part in self.name.split(".")[1:]:
            if part in ("256", "128", "64"):
                return int(part) // 8
            if part in ("U8", "S8"):
                return 1
            if part in ("U16", "S16"):
                return 2
        return 4

    def macs(self):
        """Multiply-adds of an MMA that a warp has a part in: all, or a quarter of a warpgroup's."""
        shape = self.name.split(".")[1]
        if self.unit == "HGMMA":
            m, n, k = map(int, shape.split("x"))
            return m * n * k // 4
        return {"16816": 2048, "1688": 1024, "16832": 4096, "1684": 512, "884": 256, "16864": 8192,
                "8816": 1024}.get(shape, 0)

    def results(self):
        """The registers that it writes."""
        if self.unit in NO_RESULT or not self.parts:
            return []
        found = re.fullmatch(r"(U?R)(\d+)(\.\w+)*", self.parts[0])
        if not found:
            return []
        count = 1
        if self.unit == "HGMMA":
            count = int(self.name.split(".")[1].split("x")[1]) // 2
        elif self.unit in ("LDG", "LDS", "HMMA", "LDSM"):
            count = 4 if self.unit in ("HMMA", "LDSM") else max(1, self.width() // 4)
        elif re.search(r"WIDE|\.64", self.name):
            count = 2
        return [f"{found[1]}{int(found[2]) + n}" for n in range(count)]

    def takes(self):
        """The registers that it reads, of those with numbers."""
        result = set()
        for part in self.parts[1:] if self.results() else self.parts:
            for found in re.finditer(r"(?<![UC\w])R(\d+)(\.64)?", part):
                n = 4 if self.unit in MMAS else 4 if self.width() == 16 else 2 if found[2] or self.width() == 8 else 1
                result |= {f"R{int(found[1]) + k}" for k in range(n)}
        return result

    def is_left_out(self):
        return self.unit == "HGMMA" and "gdesc[URZ], RZ" in self.operands

    def is_arrival_of_bytes(self):
        return self.base == "SYNCS" and "ARRIVE" in self.name and self.name.endswith("TRANS64")

    def is_wait(self):
        return self.base == "SYNCS" and "TRYWAIT" in self.name


LABEL = re.compile(r"^(\.L_[\w$.]+|[\w$.]+):\s*$")
LINE = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(?:\{\s*)?(@!?U?P[T\d]+\s+)?([A-Z][\w.]*)\s*(.*?);?\s*\}?$")


def disassemble(path, nvdisasm):
    """The instructions and labels of each kernel."""
    text = subprocess.run([nvdisasm, "-c", path], capture_output=True, text=True, check=True).stdout
    kernels, current = {}, None
    for line in text.splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line):
            current = kernels.setdefault(section[1], ([], {}))
        elif re.match(r"\s*\.section\s", line):
            current = None
        elif current is None:
            continue
        elif label := LABEL.match(line):
            current[1][label[1]] = len(current[0])
        elif found := LINE.match(line):
            current[0].append(Instruction((found[1] or "").strip(), found[2], found[3]))
    for instructions, _ in kernels.values():  # what pads the end
        while instructions and instructions[-1].name == "NOP":
            instructions.pop()
        if instructions and instructions[-1].name == "BRA":
            instructions.pop()
    return kernels


def elf_facts(path):
    """Per kernel: registers, static shared memory, threads. And the architecture."""
    data = open(path, "rb").read()
    flags, = struct.unpack_from("<I", data, 48)
    start, = struct.unpack_from("<Q", data, 40)
    size, count, names_at = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]

    def string(offset):
        return data[offset:data.index(b"\0", offset)].decode()

    names = [string(sections[names_at][4] + s[0]) for s in sections]
    symbols = []
    for s in sections:
        if s[1] == 2:
            symbols = [string(sections[s[6]][4] + struct.unpack_from("<I", data, s[4] + at)[0])
                       for at in range(0, s[5], 24)]
    reserved = 1024 if any(n.startswith(".nv.shared.reserved") for n in names) else 0
    facts = collections.defaultdict(dict)
    for name, s in zip(names, sections):
        if name.startswith(".nv.shared.") and ".reserved" not in name:
            facts[name[11:]]["shared_static"] = s[5] - reserved
        if name.startswith(".text.") and s[7] >> 24:
            facts[name[6:]].setdefault("registers", s[7] >> 24)
        if name.startswith(".nv.info"):
            read_attributes(data[s[4]:s[4] + s[5]], name, symbols, facts)
    arch = flags >> 8 & 0xff if data[7] == 0x41 else flags & 0xff
    return facts, arch


def read_attributes(data, section, symbols, facts):
    at = 0
    while at < len(data):
        form, kind, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != 4:
            continue
        words = struct.unpack_from(f"<{value // 4}I", data, at)
        at += value
        if section == ".nv.info" and kind == 0x2f:
            facts[symbols[words[0]]]["registers"] = words[1]
        if section != ".nv.info" and kind in (0x05, 0x10):  # at most so many threads, or exactly
            facts[section[9:]]["threads"] = words[0] * words[1] * words[2]


# ---- its loops

class Loop:
    """A natural loop: a branch back to an instruction by which all of it is entered. `text` are its
    instructions between the two; what spins lies beyond."""

    def __init__(self, header, last, body, backs):
        self.header, self.last, self.body, self.backs = header, last, body, backs
        self.text = sorted(i for i in body if header <= i <= last)

    def contains(self, other):
        return other is not self and other.header >= self.header and other.last <= self.last


class Flow:
    def __init__(self, instructions, labels):
        self.instructions = instructions
        self.next = [self.successors(i, labels) for i in range(len(instructions))]
        self.order = self.reverse_postorder()
        self.place = {v: i for i, v in enumerate(self.order)}
        self.before = collections.defaultdict(list)
        for v in self.order:
            for w in self.next[v]:
                self.before[w].append(v)
        self.dominator = self.dominators()
        self.loops = self.find_loops()

    def successors(self, i, labels):
        one, count, result = self.instructions[i], len(self.instructions), set()
        named = re.findall(r"`\((\.?[\w$.]+)\)", one.operands) + re.findall(r"\.L_x_\d+", one.operands)
        if one.base in ("BRA", "BRX", "JMP", "JMX", "WARPSYNC"):
            result |= {labels[n] for n in named if n in labels and labels[n] < count}
        is_conditional = one.predicate or re.match(r"^~?!?U[PR]|^!?P\d", one.operands)
        ends = one.base in ("BRX", "JMX", "EXIT", "RET", "KILL") or (
            one.base in ("BRA", "JMP") and ".DIV" not in one.name and ".CONV" not in one.name)
        if (not ends or is_conditional) and i + 1 < count:
            result.add(i + 1)
        return result

    def reverse_postorder(self):
        if not self.instructions:
            return []
        seen, done, stack = {0}, [], [(0, iter(self.next[0]))]
        while stack:
            w = next((x for x in stack[-1][1] if x not in seen), None)
            if w is None:
                done.append(stack.pop()[0])
            else:
                seen.add(w)
                stack.append((w, iter(self.next[w])))
        return done[::-1]

    def dominators(self):
        dominator, changed = {0: 0}, True

        def meet(a, b):
            while a != b:
                while self.place[a] > self.place[b]:
                    a = dominator[a]
                while self.place[b] > self.place[a]:
                    b = dominator[b]
            return a

        while changed:
            changed = False
            for v in self.order[1:]:
                known = [p for p in self.before[v] if p in dominator]
                found = known[0]
                for p in known[1:]:
                    found = meet(found, p)
                if dominator.get(v) != found:
                    dominator[v], changed = found, True
        return dominator

    def dominates(self, a, b):
        while self.place[b] > self.place[a]:
            b = self.dominator[b]
        return a == b

    def find_loops(self):
        bodies, backs = collections.defaultdict(set), collections.defaultdict(list)
        for v in self.order:
            for w in self.next[v]:
                # BRA.U.ANY: lanes take turns, no loop of the program.
                if w <= v and self.dominates(w, v) and ".ANY" not in self.instructions[v].name:
                    backs[w].append(v)
                    bodies[w].add(w)
                    stack = [v]
                    while stack:
                        x = stack.pop()
                        if x not in bodies[w]:
                            bodies[w].add(x)
                            stack += self.before[x]
        return [Loop(h, max(backs[h]), bodies[h], backs[h]) for h in sorted(bodies)]

    def trip(self, loop):
        """The instructions of the way from the header to a branch back that multiplies most and, of these
        ways, has the fewest instructions."""
        best, came_from = {}, {}
        for v in self.order:
            if v not in loop.body:
                continue
            before = [p for p in self.before[v]
                      if p in best and v != loop.header and self.place[p] < self.place[v]]
            came_from[v] = max(before, key=best.get, default=None)
            macs, length = best.get(came_from[v], (0, 0))
            one = self.instructions[v]
            is_mma = one.unit in MMAS
            best[v] = (macs + (one.macs() if is_mma else 0), length - (not is_mma))
        way, v = [], max((b for b in loop.backs if b in best), key=best.get)
        while v is not None:
            way.append(v)
            v = came_from[v]
        return way[::-1]


# ---- what registers hold, as far as addresses and byte counts need it

class Values:
    """A value is (constant, {symbol: factor}); what is not known is a symbol of its own, equal where
    the same operation has the same operands. Predicates are taken as true: these are the values of
    the thread that copies."""

    def __init__(self, flow):
        self.flow, self.symbols = flow, {}
        self.at = {}  # the operands that anybody asks for, before each SYNCS
        self.run()

    def symbol(self, key):
        return (0, ((self.symbols.setdefault(key, len(self.symbols)), 1),))

    @staticmethod
    def constant(n):
        return (n, ())

    @staticmethod
    def plus(a, b, factor=1):
        terms = dict(a[1])
        for s, n in b[1]:
            terms[s] = terms.get(s, 0) + factor * n
        return (a[0] + factor * b[0], tuple(sorted((s, n) for s, n in terms.items() if n)))

    def times(self, a, b):
        if not b[1]:
            a, b = b, a
        if a[1]:
            return self.symbol(("product", a, b))
        return (a[0] * b[0], tuple((s, n * a[0]) for s, n in b[1] if a[0]))

    def read(self, state, text):
        text = text.strip().replace(".reuse", "")
        negative, text = text.startswith("-"), text.lstrip("-")
        if text in ("RZ", "URZ"):
            value = self.constant(0)
        elif re.fullmatch(r"0x[0-9a-f]+", text):
            value = self.constant(int(text, 16))
        elif found := re.match(r"(U?R\d+)", text):
            value = state.get(found[1]) or self.symbol(("register", found[1]))
        else:
            value = self.symbol(("text", text))
        return self.plus(self.constant(0), value, -1) if negative else value

    def address(self, state, text):
        """[R6+URZ+0x28400]"""
        total = self.constant(0)
        for part in re.search(r"\[([^\]]*)\]", text)[1].split("+"):
            total = self.plus(total, self.read(state, part))
        return total

    def computed(self, one, state):
        d = [p for p in one.parts[1:] if not re.fullmatch(r"!?U?P[T\d]", p)]
        r = [self.read(state, p) for p in d]
        name = one.name.lstrip("U") if one.base.startswith("U") else one.name
        if ".X" not in one.name and ".HI" not in one.name and "WIDE" not in one.name:
            if name == "MOV" or one.base in ("S2UR", "S2R", "R2UR"):
                return r[0]
            if name == "IADD3" and len(r) == 3:
                return self.plus(self.plus(r[0], r[1]), r[2])
            if one.base == "VIADD":
                return self.plus(r[0], r[1])
            if name == "LEA" and len(r) >= 3 and not r[2][1]:
                return self.plus(self.times(self.constant(1 << r[2][0]), r[0]), r[1])
            if re.match(r"SHF\.L\.U32", name) and not r[1][1]:
                return self.times(self.constant(1 << r[1][0]), r[0])
            if one.base in ("IMAD", "UIMAD") and len(r) == 3:
                return self.plus(self.times(r[0], r[1]), r[2])
        return self.symbol((one.name, tuple(r)))

    def step(self, i, state):
        one = self.flow.instructions[i]
        if one.base == "SYNCS":
            where = next((p for p in one.parts if "[" in p), None)
            if where:
                self.at[i] = (self.address(state, where), self.read(state, one.parts[-1]))
            return
        results = one.results()
        if results:
            value = self.computed(one, state)
            for n, register in enumerate(results):
                state[register] = value if len(results) == 1 else self.symbol(("part", value, n))

    def run(self):
        flow, out = self.flow, {}
        heads = {l.header: l for l in flow.loops}
        for v in flow.order:
            before = [p for p in flow.before[v] if p in out]
            if len(before) == 1 and len(flow.next[before[0]]) == 1:
                state = out.pop(before[0])  # nobody else asks for it
            else:
                state = self.joined(v, [out[p] for p in before])
            if v in heads:
                for r in self.written(heads[v]):
                    state[r] = self.symbol(("turn", v, r))
            self.step(v, state)
            out[v] = state

    def joined(self, v, states):
        state = dict(states[0]) if states else {}
        for other in states[1:]:
            for r in state:
                if other.get(r) != state[r]:
                    state[r] = self.symbol(("joined", v, r))
        return state

    def written(self, loop):
        return {r for i in loop.body for r in self.flow.instructions[i].results()}


# ---- copies

class Copies:
    """What an iteration of a loop copies."""

    def __init__(self, flow, values, main, threads):
        self.flow, self.values, self.main = flow, values, main
        self.instructions = flow.instructions
        # A warpgroup that gives its registers away only copies.
        gives = any("DEALLOC" in i.name for i in self.instructions)
        self.threads = threads - 128 if gives and threads and threads > 128 else threads
        self.producers = self.find_producers()
        self.copying = [main, *self.producers]
        if not self.count(main, *COPIES) and not self.producers:
            around = [l for l in flow.loops if l.contains(main) and self.count(l, *COPIES)]
            self.copying = [min(around, key=lambda l: len(l.text))] if around else [main]

    def count(self, loop, *units):
        return sum(self.instructions[i].unit in units and "UTMAST" not in self.instructions[i].name
                   and "UTMACMD" not in self.instructions[i].name and "UTMACCTL" not in self.instructions[i].name
                   for i in loop.text)

    def find_producers(self):
        """Loops beside the main loop that copy by TMA and do not multiply: the innermost."""
        main, flow = self.main, self.flow
        found = [l for l in flow.loops
                 if self.count(l, "TMA") and not self.count(l, *MMAS) and not l.contains(main)
                 and not main.contains(l) and any("ARRIVE" in self.instructions[i].name for i in l.text)]
        return [l for l in found if not any(l.contains(o) for o in found)]

    def facts(self):
        parts = []
        for loop in self.copying:  # one ring may be filled from two loops, one behind the other
            parts += [p for p in self.by_tma(loop) if p["place"] not in [q.get("place") for q in parts]]
            parts += self.by_cp_async(loop)
        parts += self.by_registers(self.main)
        total = sum(p["bytes"] or 0 for p in parts)
        ring = [p for p in parts if p["bytes"] is None or 8 * p["bytes"] >= total]
        return {"copies": parts, "bytes": total,
                "slots": min((p["slots"] for p in ring), default=None),
                "ahead": min((p["ahead"] for p in ring), default=None),
                "awaited_bytes": sum(p["bytes"] or 0 for p in parts if p["awaited"]),
                "producer_instructions": sum(len(l.text) for l in self.producers) or None}

    # -- TMA

    def place_of(self, address):
        """The constant part, and whether there is a part that changes from turn to turn."""
        base = self.values.symbols.get(("text", "SR_CgaCtaId"))
        return address[0], any(s != base for s, _ in address[1])

    def barriers(self):
        """Places of barriers as they are made, by their number of arrivals."""
        made = {}
        for i, (address, count) in self.values.at.items():
            if "EXCH" in self.instructions[i].name:
                made[self.place_of(address)[0]] = count
        return made

    def slots_of(self, arrivals):
        """Of each arrival, in how many places its kind stands: barriers side by side, made for the same
        number of arrivals, up to those of the next kind."""
        made = self.barriers()
        places = [self.place_of(self.values.at[i][0]) for i in arrivals]
        starts = {p for p, turns in places if turns}
        result = []
        for place, turns in places:
            n, at = 0, place
            while at in made and made[at] == made[place] and (n == 0 or at not in starts):
                n, at = n + 1, at + 8
            if not turns:  # one of several places that are told apart in the text
                at = place - 8
                while at in made and made[at] == made[place]:
                    n, at = n + 1, at - 8
            result.append(max(n, 1))
        return result

    def by_tma(self, loop):
        arrivals = [i for i in loop.text if self.instructions[i].is_arrival_of_bytes() and i in self.values.at]
        waits = [i for i in loop.text if self.instructions[i].is_wait() and i in self.values.at]
        is_apart = loop in self.producers
        # A slot is not free while products read it that are in flight.
        held = 1 if not is_apart or any(n > 0 for n in waits_for_products(self.instructions, self.main)) else 0
        parts = []
        for i, slots in zip(arrivals, self.slots_of(arrivals)):
            address, count = self.values.at[i]
            awaited = not is_apart and any(w > i and self.values.at[w][0] == address for w in waits)
            parts.append({"how": "TMA", "place": f"{address[0]:#x}", "bytes": None if count[1] else count[0],
                          "slots": slots, "ahead": 0 if awaited else max(slots - held, 0), "awaited": awaited})
        return parts

    # -- cp.async

    def by_cp_async(self, loop):
        copies = [i for i in loop.text if self.instructions[i].unit == "LDGSTS"]
        if not copies:
            return []
        commits = [i for i in loop.text if self.instructions[i].base == "LDGDEPBAR"]
        waits = [(i, int(self.instructions[i].parts[-1], 16)) for i in loop.text
                 if self.instructions[i].name.startswith("DEPBAR.LE") and self.instructions[i].parts[0] == "SB0"]
        size = sum(self.instructions[i].width() for i in copies) * (self.threads or 0)
        if not waits and loop is not self.main:
            return []  # in front of the main loop, which waits for them
        if not commits or not waits:
            return [{"how": "cp.async", "bytes": size, "slots": 1, "ahead": 0, "awaited": True}]
        last, left = waits[-1]
        in_flight = left + sum(c > last for c in commits)
        if not any(self.instructions[i].unit in (*MMAS, "LDSM", "LDS") for i in loop.text if i > last):
            in_flight += len(commits)  # what the next iteration takes has landed
        awaited = any(sum(c < d <= w for d in commits) >= n for c in commits[:1] for w, n in waits if w > c)
        ahead = 0 if awaited and in_flight == 0 else in_flight // len(commits)
        return [{"how": "cp.async", "bytes": size, "slots": ahead + 1, "ahead": ahead,
                 "awaited": awaited and ahead == 0}]

    # -- plain loads

    def by_registers(self, loop):
        groups = {}
        # What stands under a condition beside the usual way is what happens in one of many turns.
        usual = set(self.flow.trip(loop)) if loop in self.flow.loops else set(loop.text)
        for at, i in enumerate(loop.text):
            one = self.instructions[i]
            if one.unit == "LDG" and i in usual:
                awaited = self.is_read(loop.text[at + 1:], one)
                groups[awaited] = groups.get(awaited, 0) + one.width()
        return [{"how": "LDG", "bytes": size * (self.threads or 0), "slots": 1, "ahead": 0 if awaited else 1,
                 "awaited": awaited} for awaited, size in sorted(groups.items())]

    def is_read(self, rest, load):
        """Whether an instruction behind a load, in the same turn, takes what it loads."""
        wanted = set(load.results())
        return any(self.instructions[i].takes() & wanted for i in rest)


def waits_for_products(instructions, loop):
    return [int(instructions[i].parts[-1], 16) for i in loop.text
            if instructions[i].name.startswith("WARPGROUP.DEPBAR")]


# ---- a kernel

def loop_facts(flow, loop, text):
    ins = [flow.instructions[i] for i in text]
    units = collections.Counter(i.unit for i in ins)
    products = collections.Counter(".".join(i.name.split(".")[:2]) for i in ins if i.unit in MMAS)
    facts = {"instructions": len(ins), "units": dict(units.most_common()), "products": dict(products),
             "local": units["local"]}
    macs = sum(i.macs() for i in ins if i.unit in MMAS)
    if macs:
        facts["macs_of_warp"] = macs
        facts["straight"] = round((len(ins) - sum(products.values())) * TILE / macs)
        if loop:
            trip = [flow.instructions[i] for i in flow.trip(loop)]
            most = sum(i.macs() for i in trip if i.unit in MMAS)
            facts["trip"] = round(sum(i.unit not in MMAS for i in trip) * TILE / most) if most else None
    return facts


def main_loop(flow):
    ins = flow.instructions

    def has(loop, *units):
        return sum(ins[i].unit in units for i in loop.text)

    def innermost(*units):
        return [l for l in flow.loops if has(l, *units)
                and not any(l.contains(o) and has(o, *units) for o in flow.loops)]

    multiplying = sorted(innermost(*MMAS), key=lambda l: (-has(l, *MMAS), len(l.text)))
    loading = sorted(innermost(*COPIES), key=lambda l: -has(l, *COPIES))
    if multiplying:
        return "products", multiplying[0]
    if any(i.unit in MMAS for i in ins):
        return "straight", None
    return ("loads", loading[0]) if loading else ("straight", None)


def blocks_of(arch, registers, shared, threads):
    """Blocks on a multiprocessor at once, and what limits them."""
    machine = MACHINES.get(arch)
    if not machine or not threads or not registers:
        return None, None
    warps = -(-threads // 32)
    limits = {"registers": machine[0] // (-(-registers // 8) * 8 * 32 * warps),
              "shared memory": machine[1] // (-(-(shared + 1024) // 128) * 128),
              "threads": machine[2] // (warps * 32), "blocks": machine[3]}
    least = min(limits, key=limits.get)
    return limits[least], least


def estimate_kernel(name, instructions, labels, elf, arch, shared, threads):
    flow = Flow(instructions, labels)
    kind, loop = main_loop(flow)
    threads = elf.get("threads") or threads
    everything = Loop(0, len(instructions) - 1, set(range(len(instructions))), [len(instructions) - 1])
    main = loop_facts(flow, loop, loop.text if loop else everything.text)
    values = Values(flow)
    at = loop or everything
    main.update(kind=kind, waits=waits_for_products(instructions, at),
                **Copies(flow, values, at, threads).facts())
    static = elf.get("shared_static", 0)
    blocks, limit = blocks_of(arch, elf.get("registers"), static + shared, threads)
    return {"kernel": name, "arch": arch, "registers": elf.get("registers"), "threads": threads,
            "shared": static + shared, "blocks": blocks, "blocks_limited_by": limit,
            "instructions": len(instructions), "local": sum(i.unit == "local" for i in instructions),
            "left_out": sum(i.is_left_out() for i in instructions),
            "main": main}


def estimate(path, nvdisasm, shared=0, threads=None, part=""):
    """Facts of each kernel of a cubin, the one with most instructions first."""
    facts, arch = elf_facts(path)
    kernels = [estimate_kernel(name, ins, labels, facts.get(name, {}), arch, shared, threads)
               for name, (ins, labels) in disassemble(path, nvdisasm).items() if part in name and ins]
    return sorted(kernels, key=lambda k: -k["instructions"])


def find_nvdisasm(given=None):
    return given or os.environ.get("PALLADIUM_NVDISASM") or shutil.which("nvdisasm")


# ---- for people

def words(kernel):
    main = kernel["main"]

    def value(x):
        return "?" if x is None else f"{x:,}"

    yield f"{kernel['kernel']}  sm_{kernel['arch']}, {value(kernel['threads'])} threads, " \
          f"{value(kernel['registers'])} registers, {value(kernel['shared'])} bytes of shared memory, " \
          f"blocks {value(kernel['blocks'])} (by {kernel['blocks_limited_by']})"
    yield f"  main loop ({main['kind']}): {main['instructions']:,} instructions of {kernel['instructions']:,}; " \
          f"local {main['local']} of {kernel['local']}"
    if main.get("straight") is not None:
        products = ", ".join(f"{n} {c}" for n, c in main["products"].items())
        yield f"  per tile: straight {main['straight']:,}, trip {value(main.get('trip'))}; {products}"
    yield "  units: " + ", ".join(f"{u} {n}" for u, n in main["units"].items())
    for copy in main["copies"]:
        yield f"  copies: {copy['how']} {value(copy['bytes'])} bytes, slots {copy['slots']}, ahead {copy['ahead']}" \
              + (", awaited in the iteration that begins it" if copy["awaited"] else "")
    yield f"  waits for products: {' '.join(map(str, main['waits'])) or 'none'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cubin", nargs="+")
    parser.add_argument("--kernel", default="", help="part of a kernel's name")
    parser.add_argument("--shared", type=int, default=0, help="bytes of dynamic shared memory")
    parser.add_argument("--threads", type=int, help="of a block, where the cubin does not say")
    parser.add_argument("--nvdisasm")
    parser.add_argument("--json", action="store_true")
    a = parser.parse_args()
    nvdisasm = find_nvdisasm(a.nvdisasm)
    if not nvdisasm:
        sys.exit("sass_estimate.py: no nvdisasm: name one by --nvdisasm or PALLADIUM_NVDISASM")
    found = {path: estimate(path, nvdisasm, a.shared, a.threads, a.kernel) for path in a.cubin}
    if a.json:
        print(json.dumps(found, indent=1))
        return
    for path, kernels in found.items():
        print(f"# {path}")
        for kernel in kernels:
            print("\n".join(words(kernel)))


if __name__ == "__main__":
    main()
