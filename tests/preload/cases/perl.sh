# SPDX-License-Identifier: MIT
# perl: hashes of arrays, regular expressions, sorting, string building, closures.
# needs: perl
cat > script.pl <<'END'
use strict; use warnings;
my (%h, $seed); $seed = 42;
sub r { $seed = ($seed * 1103515245 + 12345) % 2147483648; return $seed }
for my $i (0 .. 300000) { push @{ $h{ "k" . r() % 5000 } }, $i . "x" x (r() % 50) }
my $total = 0;
for my $k (sort keys %h) { $total += length join ",", @{ $h{$k} } }
print scalar(keys %h), " $total\n";
my $text = join " ", map { "word" . ($_ * 31 % 977) } 0 .. 200000;
my %count; $count{$1}++ while $text =~ /(word\d+)/g;
print join(" ", map { "$_=$count{$_}" } (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 9]), "\n";
my @closures = map { my $n = $_; sub { $n * $_[0] } } 1 .. 20000;
my $sum = 0; $sum += $_->(3) for @closures; print "$sum\n";
(my $copy = $text) =~ s/word(\d)(\d*)/<$2$1>/g; print length($copy), "\n";
my @sorted = sort { $a <=> $b } map { r() } 1 .. 200000; print "$sorted[0] $sorted[-1]\n";
END
perl script.pl
