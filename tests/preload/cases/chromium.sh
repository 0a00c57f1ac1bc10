# SPDX-License-Identifier: MIT
# chromium without a window: its processes and threads, pages with scripts, tables and pictures drawn in memory.
# needs: chromium timeout
cat > page.html <<'END_PAGE'
<!DOCTYPE html><title>waiting</title><body><p id=out></p><script>
let words = [], seed = 7;
for (let i = 0; i < 60000; i++) { seed = (seed * 1103515245 + 12345) % 2147483648; words.push("w" + seed % 5000); }
let counts = {};
for (const word of words) counts[word] = (counts[word] || 0) + 1;
const first = Object.entries(counts).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 3);
const table = document.createElement("table");
for (let i = 0; i < 400; i++) { const row = table.insertRow(); for (let k = 0; k < 8; k++) row.insertCell().textContent = i * k; }
document.body.append(table);
const canvas = document.createElement("canvas"); canvas.width = canvas.height = 200;
const context = canvas.getContext("2d"); context.fillStyle = "#102030"; context.fillRect(0, 0, 200, 200);
const sum = context.getImageData(0, 0, 200, 200).data.reduce((a, b) => a + b, 0);
const text = JSON.stringify([first, table.rows.length, table.textContent.length, sum, Array.from({length: 2000}, (_, i) => "x".repeat(i)).join("").length]);
table.remove();
document.getElementById("out").textContent = text;
document.title = "done";
</script>
END_PAGE
for round in 1 2; do
    timeout 90 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-extensions \
        --user-data-dir="$PWD/profile" --virtual-time-budget=5000 --dump-dom "file://$PWD/page.html" 2> log | grep -E '<title>|id="out"' |
        sed 's/<script>.*//'
    ! grep -E 'sutler: |Received signal|SIGSEGV|crashed' log
done
