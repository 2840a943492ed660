// Package pyjson parses and formats JSON as Python's json.loads and json.dumps do: integers stay integers, and dicts
// keep their order.
package pyjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxDepth limits the nesting; Python's own limit is about a thousand.
const maxDepth = 500

// Parse parses one value. Numbers are int64, uint64 if necessary, or float64.
func Parse(b []byte) (any, error) { return parse(b, number) }

// ParseSent is like [Parse] for values that will be sent: integers of more than 64 bits become texts, as Salt sends
// them (salt/payload.py, dumps).
func ParseSent(b []byte) (any, error) {
	return parse(b, func(s string) any {
		n := number(s)
		if _, inexact := n.(float64); inexact && !strings.ContainsAny(s, ".eE") {
			return s
		}
		return n
	})
}

func parse(b []byte, number func(string) any) (any, error) {
	if err := shallow(b); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("cannot read JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("cannot read JSON: there is more after the value")
	}
	return plain(v, number), nil
}

// shallow returns an error for values that are nested too deep, before the decoder recurses into them.
func shallow(b []byte) error {
	depth, text := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return fmt.Errorf("cannot read JSON: nested more than %d deep", maxDepth)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}

func plain(v any, number func(string) any) any {
	switch v := v.(type) {
	case json.Number:
		return number(v.String())
	case []any:
		for i := range v {
			v[i] = plain(v[i], number)
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k], number)
		}
	}
	return v
}

func number(s string) any {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			return n
		}
	}
	f, _ := strconv.ParseFloat(s, 64) // a number out of range is infinite, as in Python
	return f
}
