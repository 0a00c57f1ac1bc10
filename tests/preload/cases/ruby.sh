# SPDX-License-Identifier: MIT
# ruby: strings, arrays and hashes in malloc, threads, compacting collections, fork, with and without its own trimming.
# needs: ruby
export SUTLER_MANAGER=on
cat > script.rb <<'END_SCRIPT'
require 'digest'
require 'json'
rng = Random.new(7)
table = {}
40_000.times { |i| table["k#{i % 9973}"] = 'x' * rng.rand(2000) }
puts table.size, Digest::SHA256.hexdigest(table.sort.join)
results = Array.new(6) do |n|
  Thread.new do
    own = Random.new(n)
    kept = {}
    20_000.times { |i| kept[own.rand(3000)] = 'y' * own.rand(800) }
    kept.values.sum(&:size)
  end
end.map(&:value)
p results
GC.start
GC.compact if GC.respond_to?(:compact)
text = JSON.generate(table.first(3000).to_h)
p text.size, JSON.parse(text).size, text.scan(/x{100,}/).size
children = Array.new(4) do |n|
  reader, writer = IO.pipe
  pid = fork do
    reader.close
    GC.start
    writer.write((0..20_000).map { |i| 'z' * (i % (n + 50)) }.join.size.to_s)
    writer.close
    exit!(0)
  end
  writer.close
  said = reader.read
  Process.wait(pid)
  [said, $?.exitstatus]
end
p children, `echo from a shell`
10.times { Array.new(20_000) { |i| 'w' * (i % 700) }; GC.start }
GC.compact if GC.respond_to?(:compact)
GC.verify_compaction_references(expand_heap: false, toward: :empty) rescue GC.verify_compaction_references if GC.respond_to?(:verify_compaction_references)
puts table.values.sum(&:size)
END_SCRIPT
ruby script.rb
MALLOC_ARENA_MAX=2 RUBY_GC_MALLOC_LIMIT=1000000 ruby --disable-gems script.rb
