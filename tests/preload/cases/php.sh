# SPDX-License-Identifier: MIT
# php: extensions loaded with RTLD_DEEPBIND (pdo frees what libc took), arrays, strings, serialisation, regular
# expressions; with its own malloc and with ours.
# needs: php
cat > script.php <<'END'
<?php
if (!extension_loaded('pdo'))
    echo "pdo is not loaded\n";
mt_srand(7);
$words = [];
for ($i = 0; $i < 200000; $i++)
    $words["k" . mt_rand(0, 50000)][] = str_repeat(chr(97 + $i % 26), $i % 60);
ksort($words);
$text = implode(' ', array_map(fn($row) => implode('', $row), $words));
echo count($words), ' ', strlen($text), ' ', md5($text), "\n";
echo md5(serialize($words)), ' ', count(unserialize(serialize($words))), ' ', count(json_decode(json_encode($words), true)), "\n";
echo preg_match_all('/a+b*c/', $text), ' ', strlen(preg_replace_callback('/z(a)/', fn($m) => $m[1] . '-', $text)), "\n";
function tree(int $depth) { return $depth == 0 ? null : [tree($depth - 1), tree($depth - 1)]; }
function size($node) { return $node === null ? 1 : size($node[0]) + size($node[1]); }
for ($i = 0; $i < 5; $i++)
    echo size(tree(14)), "\n";
$iterator = (function () { for ($i = 0; $i < 100000; $i++) yield new ArrayObject([$i]); })();
$sum = 0;
foreach ($iterator as $object)
    $sum += $object[0];
echo $sum, ' ', iconv('UTF-8', 'ISO-8859-1', "gr\u{fc}n") === "gr\xfcn" ? 'converted' : 'not converted', "\n";
END
php script.php
USE_ZEND_ALLOC=0 php script.php
