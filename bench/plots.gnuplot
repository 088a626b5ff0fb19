# SPDX-License-Identifier: MIT
# Draws rates, cache, hits, million and memory.svg in `folder` from the files there; run.sh calls it.
if (!exists("folder") || !exists("timers")) exit error "plots.gnuplot: run.sh sets folder and timers"
do for [file in "rates.dat cache.dat hits.dat million.csv memory.csv"] {
	if (system("test -s '".folder."/".file."' && echo yes") ne "yes") {
		exit error "plots.gnuplot: ".folder."/".file." is not there"
	}
}
set datafile separator whitespace
set terminal svg size 760,340 font "sans-serif,12" background rgb "white"
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror

set output folder."/rates.svg"
set title "Commands applied a second, ".timers." timers, 2 producers"
set ylabel "million a second"
set style data histograms
set style histogram clustered gap 1
set style fill solid noborder
set boxwidth 0.9
set yrange [0:*]
set key below
set offsets 0, 0, 1, 0
plot folder."/rates.dat" using ($2/1e6):xtic(1) title "timingwheel" lc rgb "#2a6f97", \
     "" using ($3/1e6) title "go-zero's design in C" lc rgb "#c9ada7", \
     "" using ($0-0.16):($2/1e6):(sprintf("%.1f", $2/1e6)) with labels offset 0,0.6 notitle, \
     "" using ($0+0.17):($3/1e6):(sprintf("%.1f", $3/1e6)) with labels offset 0,0.6 notitle

set output folder."/cache.svg"
set key inside top right vertical
set bmargin 3.5
set title "Cache: calls a second, by gets/sets and threads; 1,000,000 entries, Zipf 0.99"
plot folder."/cache.dat" using ($2/1e6):xtic(1) title "timingwheel" lc rgb "#2a6f97", \
     "" using ($3/1e6) title "uthash behind one mutex" lc rgb "#c9ada7", \
     "" using ($0-0.16):($2/1e6):(sprintf("%.1f", $2/1e6)) with labels offset 0,0.6 notitle, \
     "" using ($0+0.17):($3/1e6):(sprintf("%.1f", $3/1e6)) with labels offset 0,0.6 notitle

set output folder."/hits.svg"
set key below
unset bmargin
set title "Cache with room for a tenth of the keys: hits"
set ylabel "percent"
plot folder."/hits.dat" using 2:xtic(1) title "LRU" lc rgb "#c9ada7", \
     "" using 3 title "S3-FIFO" lc rgb "#2a6f97", \
     "" using ($0-0.16):2:(sprintf("%.1f", $2)) with labels offset 0,0.6 notitle, \
     "" using ($0+0.17):3:(sprintf("%.1f", $3)) with labels offset 0,0.6 notitle

set output folder."/million.svg"
set datafile separator comma
set title timers." timers: set, a quarter moved, a quarter removed"
set xlabel "seconds"
set ylabel "thousand timers"
set y2label "lateness so far, ms"
set ytics nomirror
set y2tics
set border 11
set yrange [0:*]
set y2range [0:*]
set style data lines
set key below
unset offsets
plot folder."/million.csv" every ::1 using 1:($2/1e3) title "pending" lw 2 lc rgb "#2a6f97", \
     "" every ::1 using 1:($4/1e3) title "fired a second" lw 2 lc rgb "#61a5c2", \
     "" every ::1 using 1:($5/1e6) axes x1y2 title "lateness p50 (right)" lw 2 lc rgb "#e9c46a", \
     "" every ::1 using 1:($6/1e6) axes x1y2 title "lateness p99 (right)" lw 2 lc rgb "#e76f51"

set output folder."/memory.svg"
set title timers." timers fire, then nothing is called"
set ylabel "resident MiB"
unset y2label
unset y2tics
set border 3
of(load) = strcol(1) eq load ? column(2) : NaN
plot folder."/memory.csv" every ::1 using (of("storm_keyed")):($3/2**20) title "by key" \
	lw 2 lc rgb "#2a6f97", \
     "" every ::1 using (of("survivors_keyed")):($3/2**20) title "by key, 1 % stay" \
	lw 2 lc rgb "#61a5c2", \
     "" every ::1 using (of("storm_handles")):($3/2**20) title "by handle" \
	lw 2 lc rgb "#e76f51", \
     "" every ::1 using (of("survivors_handles")):($3/2**20) title "by handle, 1 % stay" \
	lw 2 lc rgb "#e9c46a"
