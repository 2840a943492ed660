#!/bin/sh
# The module "hello": one function, in shell.
case $1 in
describe) echo '{"protocol": 1, "functions": {"world": {"doc": "Greet somebody.",
            "params": [{"name": "name", "type": "string", "pattern": "^[A-Za-z ]+$", "default": "world"}],
            "examples": [{"args": ["Ada"], "return": "Hello Ada"}]}}}' ;;
call)     name=$(sed -n 's/.*"name":"\([^"]*\)".*/\1/p')
          echo "greeting $name" >&2
          echo "\"Hello $name\"" ;;
esac
