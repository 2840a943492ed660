package content

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/payload"
)

// PieceSize is the size in bytes of the pieces in which files are stored and read.
const PieceSize = 256 << 10

// UploadTime is the time limit for placing an order with content. Older content without an order is an
// incomplete upload.
const UploadTime = time.Hour

// File describes a file of an order.
type File struct {
	Name string
	// Size is in bytes, SHA256 lower-case hexadecimal.
	Size   int64
	SHA256 string
	// first is the number of the file's first piece.
	first int
}

// Header is an order's content except for the bytes of its files.
type Header struct {
	// Args are the job's arguments in wire format, if Secret.
	Args   []any
	Secret bool
	Pillar map[string]any
	// Files are sorted by name.
	Files []File
	// Made is when the content was created, to the second. Minions see it as the files' time.
	Made time.Time
}

// File returns a file by name.
func (h *Header) File(name string) (File, bool) {
	i, ok := slices.BinarySearchFunc(h.Files, name, func(f File, name string) int { return strings.Compare(f.Name, name) })
	if !ok {
		return File{}, false
	}
	return h.Files[i], true
}

// Digest returns text that is equal for two orders with the same content. It reveals content, so make a keyed
// digest of it before storing it.
func (h *Header) Digest() []byte {
	out := fmt.Appendf(nil, "%#v\n%#v\n", payload.Plain(h.Args), payload.PlainMap(h.Pillar)) // %#v prints maps sorted by key
	for _, f := range h.Files {
		out = fmt.Appendf(out, "%q %d %s\n", f.Name, f.Size, f.SHA256)
	}
	return out
}

// Writer stores the content of a new order. It is not safe for concurrent use. Without a store it only computes
// digests, to compare an order with an earlier one of the same id.
type Writer struct {
	to     store.Contents
	seal   Sealer
	limits Limits
	key    string
	made   time.Time
	header Header
	bytes  int64
	pieces int
	room   func(bytes int) error // counts what is stored, or refuses it; nil for no limit
}

// NewWriter returns a Writer. If to is nil, nothing is stored.
func NewWriter(to store.Contents, seal Sealer, limits Limits) *Writer {
	now := time.Now().UTC()
	return &Writer{to: to, seal: seal, limits: limits, key: rand.Text(), made: now, header: Header{Made: now.Truncate(time.Second)}}
}

// Key returns the key under which the content is stored.
func (w *Writer) Key() string { return w.key }

// Header returns the header of what was written so far.
func (w *Writer) Header() *Header { return &w.header }

// AddFile reads a file to its end and stores it, with one piece in memory at a time. Errors that wrap ErrBad
// are about the name, the number or the size of files; others come from content or the store.
func (w *Writer) AddFile(ctx context.Context, name string, content io.Reader) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if content == nil {
		return bad("file %q has no content: its reader is nil", name)
	}
	if len(w.header.Files) >= w.limits.Files {
		return bad("an order may have %d files, not more", w.limits.Files)
	}
	i, found := slices.BinarySearchFunc(w.header.Files, name, func(f File, name string) int { return strings.Compare(f.Name, name) })
	if found {
		return bad("two files have the name %q", name)
	}
	f := File{Name: name, first: w.pieces + 1}
	hash := sha256.New()
	buf := make([]byte, PieceSize)
	for {
		n, err := io.ReadFull(content, buf)
		if n > 0 {
			if w.bytes += int64(n); w.bytes > w.limits.Bytes {
				return bad("the files of an order may have %d bytes, not more", w.limits.Bytes)
			}
			hash.Write(buf[:n])
			f.Size += int64(n)
			w.pieces++
			if err := w.save(ctx, w.pieces, buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && n < len(buf) && ended(content) {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot read file %q of the order: %w", name, err)
		}
	}
	f.SHA256 = hex.EncodeToString(hash.Sum(nil))
	w.header.Files = slices.Insert(w.header.Files, i, f)
	return nil
}

// ended reports whether a reader that returned less than requested is at its end. io.ReadFull returns the same
// error if the source itself failed with io.ErrUnexpectedEOF.
func ended(r io.Reader) bool {
	n, err := r.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// SetPillar adds the pillar.
func (w *Writer) SetPillar(p map[string]any) error {
	if err := w.fits("pillar", p); err != nil {
		return err
	}
	w.header.Pillar = p
	return nil
}

// SetArgs makes the order secret and adds its arguments, in wire format.
func (w *Writer) SetArgs(args []any) error {
	if err := w.fits("arguments", args); err != nil {
		return err
	}
	w.header.Args, w.header.Secret = args, true
	return nil
}

func (w *Writer) fits(what string, v any) error {
	if n := int64(payload.Size(v)); n > w.limits.Pillar {
		return bad("the %s of an order may have %d bytes, not more", what, w.limits.Pillar)
	}
	return nil
}

// Commit stores the header. After it the content is complete, and an order may own it.
func (w *Writer) Commit(ctx context.Context) error {
	h := w.header
	files := make([]any, len(h.Files))
	for i, f := range h.Files {
		files[i] = map[string]any{"name": f.Name, "size": f.Size, "sha256": f.SHA256, "first": f.first}
	}
	m := map[string]any{"files": files, "made": h.Made.Unix()}
	if h.Secret {
		m["args"] = h.Args
	}
	if h.Pillar != nil {
		m["pillar"] = h.Pillar
	}
	b, err := payload.MarshalBin(m)
	if err != nil {
		return fmt.Errorf("cannot pack what the order carries: %w", err)
	}
	return w.save(ctx, 0, b)
}

func (w *Writer) save(ctx context.Context, n int, clear []byte) error {
	if time.Since(w.made) > UploadTime {
		return bad("the files of an order must arrive within %v", UploadTime)
	}
	if w.to == nil {
		return nil
	}
	if w.room != nil {
		if err := w.room(len(clear)); err != nil {
			return err
		}
	}
	body, err := w.seal.Seal(place(w.key, n), clear)
	if err != nil {
		return err
	}
	return w.to.SavePiece(ctx, w.key, n, w.made, body)
}

// Drop removes the stored content, if no order will own it.
func (w *Writer) Drop(ctx context.Context) error {
	if w.to == nil {
		return nil
	}
	return w.to.DropContent(ctx, w.key)
}

// place returns the name for which a piece is sealed, so that it cannot replace another piece.
func place(key string, n int) string { return "order " + key + " " + strconv.Itoa(n) }

// headerLimits limit the header when it is read. Its content was limited when it was written.
var headerLimits = payload.Limits{Bytes: 256 << 20}

// ReadHeader reads an order's header. It returns store.ErrNotFound if the order has ended, and ErrUnreadable if
// the header cannot be opened.
func ReadHeader(ctx context.Context, from store.Contents, seal Sealer, key string) (*Header, error) {
	b, err := readPiece(ctx, from, seal, key, 0)
	if err != nil {
		return nil, err
	}
	v, err := payload.UnmarshalDisk(b, headerLimits, "args")
	m, ok := payload.Map(v)
	if err != nil || !ok {
		return nil, errors.Join(ErrUnreadable, err)
	}
	h := &Header{}
	if args, ok := payload.List(m["args"]); ok {
		h.Args, h.Secret = args, true
	}
	h.Pillar, _ = payload.Map(m["pillar"])
	made, _ := payload.Int(m["made"])
	h.Made = time.Unix(made, 0).UTC()
	files, _ := payload.List(m["files"])
	for _, x := range files {
		fm, _ := payload.Map(x)
		f := File{}
		f.Name, _ = payload.Text(fm["name"])
		f.SHA256, _ = payload.Text(fm["sha256"])
		f.Size, _ = payload.Int(fm["size"])
		first, _ := payload.Int(fm["first"])
		f.first = int(first)
		h.Files = append(h.Files, f)
	}
	return h, nil
}

// ReadAt returns the rest of one piece of a file from an offset on. At or after the end of the file the result
// is empty.
func ReadAt(ctx context.Context, from store.Contents, seal Sealer, key string, f File, offset int64) ([]byte, error) {
	if offset < 0 || offset >= f.Size {
		return nil, nil
	}
	b, err := readPiece(ctx, from, seal, key, f.first+int(offset/PieceSize))
	if err != nil {
		return nil, err
	}
	if offset %= PieceSize; offset >= int64(len(b)) {
		return nil, fmt.Errorf("%w: file %q is shorter than it was", ErrUnreadable, f.Name)
	}
	return b[offset:], nil
}

func readPiece(ctx context.Context, from store.Contents, seal Sealer, key string, n int) ([]byte, error) {
	sealed, err := from.Piece(ctx, key, n)
	if err != nil {
		return nil, err
	}
	clear, err := seal.Open(place(key, n), sealed)
	if err != nil {
		return nil, errors.Join(ErrUnreadable, err)
	}
	return clear, nil
}
