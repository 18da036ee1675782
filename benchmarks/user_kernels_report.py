#!/usr/bin/env python3
"""A line for each of the kernels of benchmarks/user_kernels that benchmark_user_kernels compiled into a
folder: what sass_estimate.py counts of ours, of Triton's and of cuTile's, where $PYTHON (else python3)
has these.

    user_kernels_report.py FOLDER [--json]

FOLDER/cases says what is there. Peers' cubins stay in FOLDER/triton and FOLDER/cutile and are made anew
when the scripts that make them change."""
import collections
import concurrent.futures
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing beside the sources
import sass_estimate  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = {"triton": "triton_user_kernels.py", "cutile": "cutile_user_kernels.py"}
NEAR = 1.1  # of a peer's instructions
SAME = 1.01  # of a target: NVRTCs differ


def read_cases(folder):
    cases = []
    for line in open(f"{folder}/cases"):
        kind, *fields = line.rstrip("\n").split("\t")
        if kind == "case":
            name, peer, *numbers = fields
            at_most, stages, shared = map(int, numbers)
            cases.append({"name": name, "peer": peer, "at_most": at_most, "stages": stages, "shared": shared,
                          "notes": [], "refused": None})
        else:
            cases[-1]["notes" if kind == "note" else "refused"] = \
                cases[-1]["notes"] + fields if kind == "note" else fields[0]
    return cases


def make_peers(folder, which, wanted):
    """Compiles what is not there yet. Dynamic shared memory by name, {} where the peer is missing."""
    script, to = f"{HERE}/peers/{PEERS[which]}", f"{folder}/{which}"
    os.makedirs(to, exist_ok=True)
    index = f"{to}/index.json"
    is_new = os.path.exists(index) and os.path.getmtime(index) > os.path.getmtime(script)
    known = json.load(open(index)) if is_new else {}
    missing = sorted(set(wanted) - set(known))
    if missing:
        python = os.environ.get("PYTHON", "python3")
        run = subprocess.run([python, script, to, *missing], capture_output=True, text=True)
        if run.returncode != 0:
            print(f"# without {which}: {(run.stderr.strip().splitlines() or ['?'])[-1]}", file=sys.stderr)
            return {}
        for line in run.stderr.splitlines():
            if line.startswith(PEERS[which]):
                print(f"# {line}", file=sys.stderr)
        known |= {n: None for n in missing}  # of what it does not have, too
        for line in run.stdout.splitlines():
            name, *rest = line.split()
            known[name] = int(rest[0]) if rest else 0
        json.dump(known, open(index, "w"))
    return {n: s for n, s in known.items() if n in wanted and s is not None}


def facts_of(job):
    path, shared, nvdisasm = job
    return sass_estimate.estimate(path, nvdisasm, shared)[0]


def figure(kernel):
    """Instructions of a tile in every trip; of a loop without products, of an iteration."""
    main = kernel["main"]
    return next(main[k] for k in ("trip", "straight", "instructions") if main.get(k) is not None)


def short(kernel):
    main = kernel["main"]
    words = f"{figure(kernel):6,}"
    words += f" ahead {'-' if main['ahead'] is None else main['ahead']}"
    if kernel["local"]:
        words += f" spills {kernel['local']}"
    if kernel["left_out"]:
        words += f" products left out {kernel['left_out']}"
    if kernel["blocks"] == 0:
        words += " (too large to run)"
    return words


def ours(kernel):
    main = kernel["main"]
    words = short(kernel)
    if main.get("straight") and main["straight"] != figure(kernel):
        words += f" in all {main['straight']:,}"
    if main["awaited_bytes"] and main["ahead"] != 0:
        words += f" awaited {main['awaited_bytes']:,} of {main['bytes']:,} B"
    if main["waits"] and not any(main["waits"]):
        words += " wait<0>"
    if "HMMA" in main["units"] and kernel["arch"] >= 90:
        words += " mma.sync"
    return words


def verdicts(case, kernel, peers):
    """What is worse than it should be: figures first, then words."""
    found, main = [], kernel["main"]
    if kernel["left_out"]:
        found.append(f"lacks {kernel['left_out']} of its products")
    if case["at_most"] and figure(kernel) > SAME * case["at_most"]:
        found.append(f"{figure(kernel) / case['at_most']:.2f} x the target")
    if case["stages"] > (main["slots"] or 0):
        found.append(f"{main['slots']} of {case['stages']} stages")
    if main["kind"] == "products" and main["ahead"] == 0:
        found.append("nothing ahead")
    runnable = [p for p in peers.values() if p["blocks"] != 0]
    if runnable and main.get("macs_of_warp"):
        least = min(map(figure, runnable))
        if figure(kernel) > NEAR * least:
            found.append(f"{figure(kernel) / least:.2f} x a peer")
        ahead = max(p["main"]["ahead"] or 0 for p in runnable)
        if (main["ahead"] or 0) < ahead:
            found.append(f"a peer copies {ahead} ahead")
    return found


def main():
    folder, as_json = sys.argv[1], "--json" in sys.argv
    nvdisasm = sass_estimate.find_nvdisasm()
    if not nvdisasm:
        sys.exit("user_kernels_report.py: no nvdisasm: scripts/setup --nvdisasm fetches one")
    cases = read_cases(folder)
    wanted = {c["peer"] for c in cases if c["peer"]}
    made = {which: make_peers(folder, which, wanted) for which in PEERS}
    jobs = {("ours", c["name"]): (f"{folder}/{c['name']}.cubin", c["shared"], nvdisasm)
            for c in cases if not c["refused"]}
    for which, names in made.items():
        jobs |= {(which, n): (f"{folder}/{which}/{n}.cubin", shared, nvdisasm) for n, shared in names.items()}
    with concurrent.futures.ProcessPoolExecutor() as pool:
        facts = dict(zip(jobs, pool.map(facts_of, jobs.values())))
    counts = collections.Counter()
    for c in cases:
        kernel = facts.get(("ours", c["name"]))
        peers = {w: facts[w, c["peer"]] for w in PEERS if (w, c["peer"]) in facts}
        c["ours"], c["peers"] = kernel, peers
        line = f"{c['name']:32} " + (ours(kernel) if kernel else f"refused: {c['refused']}")
        line += f"   target <= {c['at_most']:,}" if c["at_most"] else ""
        line += "".join(f"   {w} {short(p).strip()}" for w, p in peers.items())
        c["verdicts"] = verdicts(c, kernel, peers) if kernel else ["refused"]
        for what, word in ("over the target", "target"), ("copy nothing ahead", "nothing"), ("behind a peer", "peer"):
            counts[what] += any(word in v for v in c["verdicts"])
        if not as_json:
            print(line + (f"   !! {', '.join(c['verdicts'])}" if c["verdicts"] else ""))
            for note in c["notes"]:
                print(f"    note: {note}")
    if as_json:
        print(json.dumps(cases, indent=1))
    else:
        print(f"# {len(cases)} kernels; " + ", ".join(f"{n} {what}" for what, n in counts.items()))


if __name__ == "__main__":
    main()
