#!/bin/sh
# Ends before it listens.
echo "cannot open the store" >&2
exit 3
