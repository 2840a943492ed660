package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/atomicfile"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/protocol/payload"
)

// A record is its length and CRC-32 (4 bytes each, big endian) and a packed array whose first item is its kind. The
// file begins with magic.
const (
	magic     = "brine-journal 1\n"
	recBegin  = 1 // jid, unix, master, job
	recEnd    = 2 // jid
	recSerial = 3 // key, number, unix
	recPin    = 4 // master
	recSeen   = 5 // unix, jid hash
	recBorn   = 6 // id
	maxRecord = 1 << 20
)

var limits = payload.Limits{Bytes: maxRecord}

// beginRecord returns the record of a job that begins, without arguments if they are too large.
func beginRecord(e Entry, now int64) []any {
	rec := []any{recBegin, e.JID, now, e.Master, e.Job}
	if b, err := payload.MarshalBin(e.Job); err != nil || len(b) > maxArgs {
		small := map[string]any{}
		for k, v := range e.Job {
			if k != "arg" && k != "metadata" {
				small[k] = v
			}
		}
		rec[4] = small
	}
	return rec
}

// encodeRecord packs a record with its length and checksum.
func encodeRecord(rec any) ([]byte, error) {
	body, err := payload.MarshalBin(rec)
	if err != nil {
		return nil, fmt.Errorf("cannot pack journal record: %w", err)
	}
	if len(body) > maxRecord {
		return nil, fmt.Errorf("cannot write journal record: %d bytes exceed %d", len(body), maxRecord)
	}
	b := make([]byte, 8, 8+len(body))
	binary.BigEndian.PutUint32(b, uint32(len(body)))
	binary.BigEndian.PutUint32(b[4:], crc32.ChecksumIEEE(body))
	return append(b, body...), nil
}

// appendRecord writes a record and returns the size of the file after it. The caller holds mu.
func (j *Journal) appendRecord(rec any) (int64, error) {
	if j.f == nil {
		return 0, fmt.Errorf("cannot write journal: %w", os.ErrClosed)
	}
	b, err := encodeRecord(rec)
	if err != nil {
		return 0, err
	}
	if j.size+int64(len(b)) > compactAt && j.size > 2*j.liveBytes() {
		if err := j.compact(); err != nil {
			j.o.Log.Warn("Cannot shorten the journal", "path", j.o.Path, "err", err)
		}
	}
	if err := j.writeBytes(b); err != nil {
		j.failure = err
		return 0, fmt.Errorf("cannot write journal %q: %w", j.o.Path, err)
	}
	j.failure = nil
	return j.size, nil
}

// writeBytes writes at the end of the file. It first cuts off the bytes of an earlier write that failed halfway.
func (j *Journal) writeBytes(b []byte) error {
	if j.torn {
		if err := j.f.Truncate(j.size); err != nil {
			return err
		}
		j.torn = false
	}
	if j.size == 0 {
		b = append([]byte(magic), b...)
	}
	if _, err := j.f.WriteAt(b, j.size); err != nil {
		j.torn = true
		return err
	}
	j.size += int64(len(b))
	return nil
}

// liveBytes estimates the size of the records that are still needed.
func (j *Journal) liveBytes() int64 {
	return int64(len(j.seen)*20 + len(j.running)*512 + len(j.serials)*64 + len(j.pins)*128)
}

// compact rewrites the file with the records that are still needed. The caller holds mu.
func (j *Journal) compact() error {
	now := j.o.Now().Unix()
	out := []byte(magic)
	var failed error
	put := func(rec ...any) {
		b, err := encodeRecord(rec)
		failed = errors.Join(failed, err)
		out = append(out, b...)
	}
	put(recBorn, j.id)
	limit := now - int64(Keep/time.Second)
	for id, at := range j.seen {
		if at < limit {
			delete(j.seen, id)
			continue
		}
		put(recSeen, at, id)
	}
	for key, s := range j.serials {
		put(recSerial, key, s.value, s.at)
	}
	for master := range j.pins {
		put(recPin, master)
	}
	for _, e := range sortedEntries(j.running) {
		put(beginRecord(e, e.At.Unix())...)
	}
	if failed != nil {
		return failed
	}
	if err := atomicfile.WriteFile(j.o.Path, out, 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(j.o.Path, os.O_RDWR|openFlags, 0o600)
	if err != nil {
		return err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return err
	}
	j.f.Close()
	j.f, j.size, j.torn = f, int64(len(out)), false
	j.gen++
	return nil
}

func sortedEntries(m map[string]Entry) []Entry {
	list := make([]Entry, 0, len(m))
	for _, e := range m {
		list = append(list, e)
	}
	sorting.Stable(list, func(a, b Entry) int { return strings.Compare(a.JID, b.JID) })
	return list
}

// load reads records until the end or the first bad one. It returns the number of bytes of complete records.
func (j *Journal) load(r io.Reader) (good int64, err error) {
	br := bufio.NewReader(r)
	head := make([]byte, len(magic))
	if n, err := io.ReadFull(br, head); n == 0 {
		return 0, nil
	} else if err != nil || string(head) != magic {
		return 0, errors.New("not a journal")
	}
	good = int64(len(magic))
	for {
		rec, n, err := nextRecord(br)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return good, err
		}
		if err := j.applyRecord(rec); err != nil {
			return good, err
		}
		good += n
	}
}

// nextRecord reads one record. An incomplete record counts as the end.
func nextRecord(br *bufio.Reader) (rec []any, size int64, err error) {
	var head [8]byte
	if _, err := io.ReadFull(br, head[:]); err != nil {
		return nil, 0, io.EOF
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxRecord {
		return nil, 0, fmt.Errorf("record of %d bytes", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(br, body); err != nil {
		return nil, 0, io.EOF
	}
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(head[4:]) {
		return nil, 0, errors.New("checksum of a record is wrong")
	}
	v, err := payload.UnmarshalDisk(body, limits)
	if err != nil {
		return nil, 0, err
	}
	rec, ok := payload.List(v)
	if !ok || len(rec) < 2 {
		return nil, 0, errors.New("record is not an array")
	}
	return rec, int64(n) + 8, nil
}

// applyRecord applies a record to memory. Records of unknown kinds, from a newer version, are skipped.
func (j *Journal) applyRecord(rec []any) error {
	kind, _ := payload.Int(rec[0])
	text := func(i int) string {
		if i >= len(rec) {
			return ""
		}
		s, _ := payload.Text(rec[i])
		return s
	}
	number := func(i int) int64 {
		if i >= len(rec) {
			return 0
		}
		n, _ := payload.Int(rec[i])
		return n
	}
	switch kind {
	case recBegin:
		if len(rec) < 5 {
			return errors.New("record of a job is too short")
		}
		e := Entry{JID: text(1), Master: text(3), At: time.Unix(number(2), 0)}
		e.Job, _ = payload.Map(rec[4])
		j.running[e.JID] = e
		j.seen[hashID(e.JID)] = number(2)
	case recEnd:
		delete(j.running, text(1))
	case recSerial:
		if key, n := text(1), number(2); n > j.serials[key].value {
			j.serials[key] = serial{n, number(3)}
		}
	case recPin:
		j.pins[text(1)] = true
	case recBorn:
		j.id = text(1)
	case recSeen:
		switch id := rec[2%len(rec)].(type) {
		case int64:
			j.seen[uint64(id)] = number(1)
		case uint64:
			j.seen[id] = number(1)
		}
	}
	return nil
}
