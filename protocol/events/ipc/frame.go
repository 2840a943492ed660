package ipc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
)

// Framing is how events follow each other on a socket. Salt has two ways, and a client cannot ask for one of them.
type Framing int

const (
	// Auto sends Plain frames, or Prefixed ones to a client that can be identified as a Salt that reads only those.
	// Both are understood when read.
	Auto Framing = iota
	// Plain is msgpack maps without separators: all lines up to the patch levels of 2025, and readers of 3007 and
	// 3008 since then.
	Plain
	// Prefixed puts the length in four bytes, big endian, before each map. Readers of late patch levels of 3006
	// need it, and writers of all late patch levels use it (salt/transport/frame.py, frame_msg_ipc).
	Prefixed
)

// frameEvent packs an event.
func frameEvent(tag string, data map[string]any, prefixed bool) ([]byte, error) {
	body, err := protocol.PackEvent(tag, data)
	if err != nil {
		return nil, err
	}
	b, err := protocol.FrameIPC(body)
	if err != nil || !prefixed {
		return b, err
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, len(b)+4), uint32(len(b))), b...), nil
}

// A reader reads events in either framing. A frame is a map, whose first byte is above 0x7f; a length that precedes
// it starts with a byte below.
type reader struct {
	r        *bufio.Reader
	plain    *payload.Reader
	prefixed bool
}

func newReader(r io.Reader) *reader { return &reader{r: bufio.NewReader(r)} }

func (r *reader) next() (string, map[string]any, error) {
	if r.plain == nil && !r.prefixed {
		first, err := r.r.Peek(1)
		if err != nil {
			return "", nil, err
		}
		if first[0] < 0x80 {
			r.prefixed = true
		} else {
			r.plain = payload.NewReader(r.r, payload.Limits{Bytes: maxEvent})
		}
	}
	if r.prefixed {
		return r.nextPrefixed()
	}
	v, err := r.plain.Next()
	if err != nil {
		return "", nil, err
	}
	return unframe(v)
}

func (r *reader) nextPrefixed() (string, map[string]any, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return "", nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxEvent {
		return "", nil, fmt.Errorf("ipc: frame of %d bytes exceeds %d", n, maxEvent)
	}
	// A length alone decides nothing about memory: the buffer grows with the bytes that arrive.
	b, err := io.ReadAll(io.LimitReader(r.r, int64(n)))
	if err == nil && len(b) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return "", nil, err
	}
	v, err := payload.UnmarshalDisk(b, payload.Limits{Bytes: maxEvent})
	if err != nil {
		return "", nil, err
	}
	return unframe(v)
}

func unframe(v any) (string, map[string]any, error) {
	m, ok := payload.Map(v)
	if !ok {
		return "", nil, fmt.Errorf("ipc: frame is %T, not a map", v)
	}
	body, ok := payload.Bytes(m["body"])
	if !ok {
		return "", nil, errors.New("ipc: frame has no body")
	}
	return protocol.UnpackEvent(body)
}
