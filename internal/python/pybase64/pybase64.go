// Package pybase64 decodes base64 as Python's binascii.a2b_base64 does: it skips characters that are not base64.
package pybase64

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// ErrPadding is Python's error for missing padding.
var ErrPadding = errors.New("Incorrect padding")

// Decode decodes a text. Its errors have the texts of Python's binascii.Error.
func Decode(s string) ([]byte, error) {
	out := make([]byte, 0, len(s)/4*3+3)
	var left byte
	quad, pads := 0, 0
	for i := range len(s) {
		if s[i] == '=' {
			if pads++; quad >= 2 && quad+pads >= 4 {
				return out, nil // input after the end is ignored
			}
			continue
		}
		v, ok := value(s[i])
		if !ok {
			continue
		}
		pads = 0
		switch quad {
		case 0:
			left = v
		case 1:
			out = append(out, left<<2|v>>4)
			left = v & 0xf
		case 2:
			out = append(out, left<<4|v>>2)
			left = v & 3
		case 3:
			out = append(out, left<<6|v)
		}
		quad = (quad + 1) % 4
	}
	switch quad {
	case 0:
		return out, nil
	case 1:
		return nil, fmt.Errorf("Invalid base64-encoded string: number of data characters (%d) cannot be 1 more than a multiple of 4",
			len(out)/3*4+1)
	}
	return nil, ErrPadding
}

// DecodeStrict decodes a text and returns an error for any other character (b64decode with validate). As in Python
// 3.11, it accepts padding after a text that needs no padding.
func DecodeStrict(s string) ([]byte, error) {
	data := strings.TrimRight(s, "=")
	pads := len(s) - len(data)
	for i := range len(data) {
		if _, ok := value(data[i]); !ok {
			return nil, errors.New("Only base64 data is allowed")
		}
	}
	switch quad := len(data) % 4; {
	case data == "" && pads > 0:
		return nil, errors.New("Leading padding not allowed")
	case quad >= 2 && quad+pads > 4:
		return nil, errors.New("Excess data after padding")
	}
	return Decode(s)
}

func value(c byte) (byte, bool) {
	switch {
	case c >= 'A' && c <= 'Z':
		return c - 'A', true
	case c >= 'a' && c <= 'z':
		return c - 'a' + 26, true
	case c >= '0' && c <= '9':
		return c - '0' + 52, true
	case c == '+':
		return 62, true
	case c == '/':
		return 63, true
	}
	return 0, false
}

// Encode returns base64 in lines of up to 76 characters, each with a line feed, as base64.encodebytes does.
func Encode(b []byte) string {
	text := base64.StdEncoding.EncodeToString(b)
	var out strings.Builder
	for len(text) > 76 {
		out.WriteString(text[:76] + "\n")
		text = text[76:]
	}
	if text != "" {
		out.WriteString(text + "\n")
	}
	return out.String()
}
