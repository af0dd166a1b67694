#!/usr/bin/env python3
"""campaigns: a made-up log in Standard Workload Format of people who do one thing for a while.

  campaigns.py [--seed N] [--jobs N] [--procs N] > campaigns.swf

Forty people. Each has campaigns: a program on so many processors with a generous limit, submitted in
batches by day, more at noon than at night, whose runs are alike (log-normal around the program's own
time); one job in ten fails early. So a user's last jobs say much of the next, as on real machines, and
unlike the logs of models that draw run times alone. Load about 0.85.
"""
import argparse
import math
import random

LIMITS = [600, 1800, 3600, 7200, 4 * 3600, 8 * 3600, 12 * 3600, 24 * 3600]


def campaign(rng, procs):
    size = 2 ** min(int(rng.expovariate(.55)), int(math.log2(procs)) - 1)
    typical = math.exp(rng.gauss(7.3, 1.3))  # half of the programs need less than 25 minutes
    limit = next((x for x in LIMITS if x >= typical * rng.uniform(1.3, 6)), LIMITS[-1])
    return {"procs": size, "typical": typical, "limit": limit, "spread": rng.uniform(.05, .5),
            "left": rng.randint(5, 60)}


def jobs_of(seed, count, procs, load=.85):
    rng = random.Random(seed)
    people = [campaign(rng, procs) for _ in range(40)]
    made, clock = [], 0.0
    while len(made) < count:
        user = min(int(rng.expovariate(.12)), len(people) - 1)
        now = people[user]
        for _ in range(min(rng.choice([1, 1, 1, 2, 4, 8, 12]), now["left"], count - len(made))):
            run = now["typical"] * math.exp(rng.gauss(0, now["spread"]))
            if rng.random() < .1:
                run = rng.uniform(1, 60)
            made.append([clock, max(1, min(run, now["limit"])), now["procs"], now["limit"], user + 1])
            clock += rng.uniform(0, 5)
            now["left"] -= 1
        if now["left"] <= 0:
            people[user] = campaign(rng, procs)
        hour = clock / 3600 % 24
        clock += rng.expovariate(1) * (300 if 8 <= hour < 19 else 1500)
    work = sum(run * size for _, run, size, _, _ in made)
    stretch = work / (load * procs * made[-1][0])
    return [[submit * stretch, *rest] for submit, *rest in made]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", type=int, default=3000)
    p.add_argument("--procs", type=int, default=128)
    a = p.parse_args()
    print(f"; made up by tests/bench/estimate/campaigns.py --seed {a.seed} --jobs {a.jobs}\n"
          f"; MaxProcs: {a.procs}")
    for number, (submit, run, size, limit, user) in enumerate(jobs_of(a.seed, a.jobs, a.procs), 1):
        print(number, round(submit), -1, round(run), size, -1, -1, size, limit, -1, 1, user,
              1 + user % 7, -1, -1, -1, -1, -1)


if __name__ == "__main__":
    main()
