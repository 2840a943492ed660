#!/bin/sh
echo "script $@"; echo err >&2; exit 3
