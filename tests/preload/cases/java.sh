# SPDX-License-Identifier: MIT
# java: the compiler and a program with threads, garbage, direct buffers and deflate (the last two live in malloc).
# needs: java javac
cat > Work.java <<'END'
import java.nio.ByteBuffer; import java.util.*; import java.util.concurrent.*; import java.util.zip.*;
public class Work {
    static long run(int seed) throws Exception {
        Random r = new Random(seed); Map<Integer, ByteBuffer> map = new TreeMap<>(); CRC32 crc = new CRC32();
        for (int i = 0; i < 20000; i++) { ByteBuffer b = ByteBuffer.allocateDirect(r.nextInt(3000) + 8); b.putInt(0, i); map.put(r.nextInt(400), b); }
        for (ByteBuffer b : map.values()) crc.update(b.getInt(0));
        for (int i = 0; i < 50; i++) { byte[] in = new byte[20000]; r.nextBytes(in); Deflater d = new Deflater(i % 9 + 1); d.setInput(in); d.finish();
            byte[] out = new byte[30000]; int n = d.deflate(out); d.end(); Inflater u = new Inflater(); u.setInput(out, 0, n); byte[] back = new byte[20000]; u.inflate(back); u.end();
            if (!Arrays.equals(in, back)) throw new Error("deflate"); crc.update(back); }
        return crc.getValue();
    }
    public static void main(String[] a) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4); List<Future<Long>> f = new ArrayList<>();
        for (int i = 0; i < 8; i++) { final int s = i; f.add(pool.submit(() -> run(s))); }
        for (Future<Long> x : f) System.out.println(x.get()); pool.shutdown();
    }
}
END
javac Work.java
java -Xmx256m Work
