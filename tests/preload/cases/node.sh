# SPDX-License-Identifier: MIT
# node: V8 with a heap of its own, buffers and strings from malloc, worker threads, compression, json.
# needs: node
cat > script.js <<'END'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib');
function work(seed) {
  const map = new Map(); let x = seed;
  for (let i = 0; i < 60000; i++) { x = (x * 48271) % 2147483647; map.set('k' + x % 3000, Buffer.alloc(x % 900, i % 256)); }
  const h = crypto.createHash('sha256');
  for (const k of [...map.keys()].sort()) h.update(k).update(map.get(k));
  return h.digest('hex');
}
if (isMainThread) {
  console.log(work(1));
  const text = JSON.stringify(Array.from({ length: 20000 }, (_, i) => ({ i, s: 'x'.repeat(i % 100) })));
  console.log(text.length, JSON.parse(text).length, zlib.gunzipSync(zlib.gzipSync(text)).length);
  let sum = 0; for (let i = 0; i < 300; i++) { const b = Buffer.allocUnsafe(1 << (i % 20)).fill(i); sum += b[b.length - 1]; } console.log(sum);
  Promise.all([2, 3, 4].map(s => new Promise((ok, no) => { const w = new Worker(__filename, { workerData: s }); w.on('message', ok); w.on('error', no); })))
    .then(r => console.log(r.join('\n')));
} else { parentPort.postMessage(work(workerData)); }
END
node script.js
