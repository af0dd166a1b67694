#!/bin/sh
#NUI --name moons
#NUI -n 1 -t 1:00
# Reads a file that was brought to it, and leaves one that is taken away.
sort -t, -k3,3nr moons.csv | awk -F, 'NR == 1 {print $2 ", " $3 " km"}' > largest.txt
