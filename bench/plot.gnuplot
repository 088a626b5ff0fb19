# SPDX-License-Identifier: MIT
# Draws rates.svg in `folder` from rates.dat there: title, library, baseline. run.sh calls it.
if (!exists("folder")) exit error "plot.gnuplot: run.sh sets folder"
set terminal svg size 760,340 font "sans-serif,12" background rgb "white"
set output folder."/rates.svg"
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set title "Commands applied a second, 1,000,000 timers, 2 producers"
set ylabel "million a second"
set style data histograms
set style histogram clustered gap 1
set style fill solid noborder
set boxwidth 0.9
set yrange [0:*]
set key below
set offsets 0, 0, 1, 0
plot folder."/rates.dat" using 2:xtic(1) title "timingwheel" lc rgb "#2a6f97", \
     "" using 3 title "go-zero's design in C" lc rgb "#c9ada7", \
     "" using ($0-0.16):2:(sprintf("%.1f", $2)) with labels offset 0,0.6 notitle, \
     "" using ($0+0.17):3:(sprintf("%.1f", $3)) with labels offset 0,0.6 notitle
