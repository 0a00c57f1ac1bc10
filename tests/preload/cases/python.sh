# SPDX-License-Identifier: MIT
# python3 with every object in malloc: dicts, lists, strings, json, regular expressions, threads, processes.
# needs: python3
export PYTHONMALLOC=malloc PYTHONHASHSEED=0
cat > script.py <<'END'
import collections, hashlib, json, multiprocessing, random, re, threading, zlib

random.seed(5)
words = [f"w{int(random.random() ** 3 * 20000)}" for _ in range(400000)]
print(collections.Counter(words).most_common(5))
tree = {f"k{i}": {"list": list(range(i % 50)), "text": "x" * (i % 300)} for i in range(20000)}
text = json.dumps(tree)
assert json.loads(text) == tree
print(len(text), hashlib.sha256(text.encode()).hexdigest())
print(len(re.findall(r"x{100,}", text)), len(zlib.compress(text.encode())))
results = [0] * 8

def work(n: int) -> None:
    rng = random.Random(n)
    table = {}
    for i in range(30000):
        table[rng.randrange(2000)] = bytes(rng.randrange(500))
    results[n] = sum(map(len, table.values()))

threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
print(results)

def square(n: int) -> int:
    return sum(len(str(i)) for i in range(n))

with multiprocessing.get_context("fork").Pool(3) as pool:
    print(pool.map(square, range(0, 20000, 1000)))
END
python3 script.py
