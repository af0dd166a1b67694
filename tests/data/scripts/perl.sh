#!/usr/bin/perl
#SBATCH -J perl -t 5
use strict;
use warnings;
my %count;
$count{$_}++ for split //, "mississippi";
print join(" ", map { "$_$count{$_}" } sort keys %count), "\n";
