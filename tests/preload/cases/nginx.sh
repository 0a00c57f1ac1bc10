# SPDX-License-Identifier: MIT
# nginx: a master and workers on a socket in the case's own folder; files, compression, a reload with another
# configuration while requests run, an orderly end.
# needs: curl gawk
# needs-file: /usr/sbin/nginx
PATH=$PATH:/usr/sbin
configure() {
    cat > "$PWD/conf" <<END_CONFIG
daemon off; master_process on; worker_processes 2; pid $PWD/pid; error_log $PWD/error.log notice; $user
events { worker_connections 64; }
http {
    access_log off; default_type text/plain; gzip on; gzip_min_length 100; gzip_types text/plain; client_body_temp_path $PWD/t1;
    proxy_temp_path $PWD/t2; fastcgi_temp_path $PWD/t3; uwsgi_temp_path $PWD/t4; scgi_temp_path $PWD/t5;
    server {
        listen unix:$PWD/s; root $PWD/files;
        location = /which { return 200 "$1\n"; }
        location /again/ { proxy_pass http://unix:$PWD/s:/; proxy_buffers 8 64k; proxy_buffer_size 64k; }
        location / { }
    }
}
END_CONFIG
}
ask() { curl -s -S --max-time 30 --unix-socket "$PWD/s" "$@"; }
is_now() {
    tries=0
    until [ "$(ask http://localhost/which 2> /dev/null)" = "$1" ]; do tries=$((tries + 1)); [ $tries -lt 200 ]; sleep 0.1; done
    echo "now $1"
}
user=
[ "$(id -u)" != 0 ] || user="user root;"
mkdir files && gawk 'BEGIN { for (f = 1; f <= 60; f++) for (i = 0; i < f * 40; i++) print f * i % 977, "abcdefgh" > "files/f" f }'
configure first
nginx -p "$PWD" -e "$PWD/error.log" -c "$PWD/conf" &
master=$!
trap 'kill -9 $master $(cat /proc/$master/task/*/children) 2> /dev/null || true' EXIT
is_now first
ask 'http://localhost/f[1-60]' | cksum
ask --compressed 'http://localhost/again/f[1-60]' | cksum
for round in second third fourth; do
    ask --compressed 'http://localhost/again/again/f[1-60]' > answer & asker=$!
    configure $round
    nginx -p "$PWD" -e "$PWD/error.log" -c "$PWD/conf" -s reload
    is_now $round
    wait $asker && cksum < answer
done
nginx -p "$PWD" -e "$PWD/error.log" -c "$PWD/conf" -s quit
trap - EXIT
wait $master && echo "ended with $?"
grep -E '\[(alert|crit|emerg)\]|exited on signal|sutler: ' error.log || echo "nothing in the log"
