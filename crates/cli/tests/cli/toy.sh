#!/bin/sh
# A toy mechanism for audits: randomized response about whether a file has a line "yes".
# toy.sh honest FILE        tells the truth three times out of four: epsilon is ln 3
# toy.sh leaky FILE         tells the truth fifteen times out of sixteen: epsilon is ln 15
# toy.sh batch FILE LINES   so many honest answers
# toy.sh crash FILE         exits with code 7, every other time, if there is such a line
# toy.sh hang FILE [SECONDS]   as good as never ends if there is such a line, and has a child that does not either
# toy.sh fail FILE          fails whatever the file is
mode=$1 file=$2
truth=0
grep -qx yes "$file" && truth=1
draw() { od -An -N2 -tu2 /dev/urandom; }
case $mode in
  honest) [ $(($(draw) % 4)) -eq 0 ] && truth=$((1 - truth)); echo "$truth" ;;
  leaky) [ $(($(draw) % 16)) -eq 0 ] && truth=$((1 - truth)); echo "$truth" ;;
  batch)
    awk -v truth="$truth" -v lines="$3" -v seed="$(od -An -N3 -tu4 /dev/urandom)" \
      'BEGIN { srand(seed); for (i = 0; i < lines; i++) print (rand() < 0.25) ? 1 - truth : truth }' ;;
  crash) [ "$truth" -eq 1 ] && [ $(($(draw) % 2)) -eq 0 ] && exit 7; echo 0 ;;
  hang)
    [ "$truth" -eq 1 ] || { echo 0; exit; }
    sleep "${3:-98764}" &
    wait ;;
  fail) echo "no such column" >&2; exit 3 ;;
esac
