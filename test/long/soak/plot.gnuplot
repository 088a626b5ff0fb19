# SPDX-License-Identifier: MIT
# Draws soak.svg in `folder` from soak.csv there; run.sh calls it.
if (!exists("folder")) exit error "plot.gnuplot: run.sh sets folder"
set datafile separator comma
set terminal svg size 760,560 font "sans-serif,12" background rgb "white"
set output folder."/soak.svg"
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set style data lines
set key below
set lmargin 9
set rmargin 3
rows = folder."/soak.csv"
set multiplot layout 2,1

set title "Soak: resident memory; the low times are the quiet ones"
set ylabel "MiB"
set yrange [0:*]
plot rows every ::1 using ($1/60):($10/2**20) title "resident" lw 1.5 lc rgb "#2a6f97", \
     "" every ::1 using ($1/60):($11/2**20) title "of wheels" lc rgb "#e76f51", \
     "" every ::1 using ($1/60):($12/2**20) title "of caches" lc rgb "#e9c46a"

set title "Lateness of the tasks of each five seconds"
set xlabel "minutes"
set ylabel "ms"
set logscale y
set yrange [*:*]
late(time) = time > 0 ? time/1e6 : NaN
plot rows every ::1 using ($1/60):(late($8)) title "longest" lc rgb "#c9ada7", \
     "" every ::1 using ($1/60):(late($7)) title "p99" lc rgb "#e76f51", \
     "" every ::1 using ($1/60):(late($6)) title "p50" lc rgb "#2a6f97"
unset multiplot
