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

// Framing is how events are separated on a socket. Salt has two ways, and a client cannot choose one.
type Framing int

const (
	// Auto sends Prefixed frames to a client that is known to be a Salt that reads only those, and Plain frames to all
	// others. Reading accepts both.
	Auto Framing = iota
	// Plain is msgpack maps without separators: all lines up to the patch levels of 2025, and the readers of later
	// patch levels of 3007 and 3008.
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

// A reader reads events in either framing. A frame is a map, whose first byte is above 0x7f; a length prefix starts
// with a byte below 0x80.
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
	// The announced length does not decide how much memory is allocated: the buffer grows with the bytes that arrive.
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
