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

// Framing says how events follow each other on a socket. Salt has two ways, and a client cannot ask for one.
type Framing int

const (
	// Auto sends Plain frames, but Prefixed ones to a client that can be seen to be a Salt which reads only those. What is
	// read may be either.
	Auto Framing = iota
	// Plain is msgpack maps one after the other: all lines up to the patch levels of 2025, and readers of 3007 and 3008 since.
	Plain
	// Prefixed puts four bytes of length, big endian, before each map: readers of late patch levels of 3006 want it, and
	// writers of all late patch levels do it (salt/transport/frame.py, frame_msg_ipc).
	Prefixed
)

// frame packs an event.
func frame(tag string, data map[string]any, prefixed bool) ([]byte, error) {
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

// reader reads events in either framing: a frame is a map, whose first byte is above 0x7f; a length in front of it begins
// with one below.
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
	// What a length announces does not decide how much is allocated: the buffer grows with what arrives.
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
