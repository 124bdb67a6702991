#!/bin/sh
# Runs the implementation on titles that the coder does not know.
sh "$IMPLEMENTATION/slugify.sh" 'Blind Workflows'
sh "$IMPLEMENTATION/slugify.sh" 'C++ 20 in 2 days'
