package content

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/fileserver"
	"github.com/brine-salt/brine/master/store"
	"github.com/brine-salt/brine/protocol/crypt"
)

// Env is the only environment with order files.
const Env = "base"

// Back is the backend's name for these files in replies to minions.
const Back = "order"

// Files serves the files of orders to minions. A minion sees only files of orders that it is running or has yet
// to run. Methods are safe for concurrent use.
type Files struct {
	Queue    store.Queue
	Contents store.Contents
	Seal     Sealer
	// Tenant returns the minion's tenant, or "".
	Tenant func(ctx context.Context, id string) (string, error)
	// HashType is Salt's hash_type.
	HashType string

	mu    sync.Mutex         // guards the fields below
	known map[string]*listed // by stored order id
	sums  map[string]string  // hashes of other types than SHA-256, by content key and name
}

// listed is an order with the list of its files. It is immutable.
type listed struct {
	order  store.Order
	header Header // without arguments and pillar
	read   time.Time
}

// maxListed and listedFor limit the number and age of cached file lists, maxSums the number of cached hashes.
const (
	maxListed = 256
	listedFor = time.Minute
	maxSums   = 4096
)

// Owns reports whether a path of an environment, in the form of fileserver.Split, is a file of an order or a
// directory of such files.
func Owns(name, env string) bool {
	return env == Env && (name == Dir || strings.HasPrefix(name, Dir+"/"))
}

// found is a file of an order that a minion may read.
type found struct {
	*listed
	file File
}

// find returns the file at a path that a minion may read, or fileserver.ErrNotFound.
func (f *Files) find(ctx context.Context, minion, name string) (found, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || CheckID(parts[1]) != nil {
		return found{}, fileserver.ErrNotFound
	}
	tenant, err := f.Tenant(ctx, minion)
	if err != nil {
		return found{}, err
	}
	ids := []string{parts[1]}
	if tenant != "" {
		ids = []string{tenant + "/" + parts[1], parts[1]}
	}
	for _, id := range ids {
		l, err := f.open(ctx, minion, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return found{}, err
		}
		if file, ok := l.header.File(parts[2]); ok {
			return found{l, file}, nil
		}
	}
	return found{}, fileserver.ErrNotFound
}

// open returns an order that is open for a minion, or store.ErrNotFound.
func (f *Files) open(ctx context.Context, minion, id string) (*listed, error) {
	f.mu.Lock()
	l := f.known[id]
	f.mu.Unlock()
	if l != nil && time.Since(l.read) < listedFor {
		if ok, err := f.isOpen(ctx, minion, l.order.JID); ok || err != nil {
			return l, err
		}
		// Meanwhile another order may have this id.
	}
	o, err := f.Queue.Order(ctx, id)
	if err != nil {
		return nil, err
	}
	if o.Content == "" {
		return nil, store.ErrNotFound
	}
	if ok, err := f.isOpen(ctx, minion, o.JID); !ok || err != nil {
		return nil, errors.Join(err, store.ErrNotFound)
	}
	return f.list(ctx, o)
}

// list reads the list of an order's files.
func (f *Files) list(ctx context.Context, o store.Order) (*listed, error) {
	h, err := ReadHeader(ctx, f.Contents, f.Seal, o.Content)
	if err != nil {
		return nil, err
	}
	l := &listed{order: o, header: Header{Files: h.Files, Made: h.Made}, read: time.Now()}
	l.order.Spec = nil
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= maxListed {
		f.known = make(map[string]*listed)
	}
	f.known[o.ID] = l
	return l, nil
}

// isOpen reports whether an order is open for a minion: pending, or sent and not ended.
func (f *Files) isOpen(ctx context.Context, minion, jid string) (bool, error) {
	ds, err := f.Queue.Deliveries(ctx, store.DeliveryFilter{JID: jid, Minion: minion, Open: true, Limit: 1})
	return len(ds) > 0, err
}

// gone converts store.ErrNotFound to fileserver.ErrNotFound, because an order may end between two requests.
func gone(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fileserver.ErrNotFound
	}
	return err
}

// Find describes a file, or returns fileserver.ErrNotFound.
func (f *Files) Find(ctx context.Context, minion, name string) (fileserver.Found, error) {
	x, err := f.find(ctx, minion, name)
	if err != nil {
		return fileserver.Found{}, gone(err)
	}
	return x.describe(), nil
}

func (x found) describe() fileserver.Found {
	name := path.Join(Dir, path.Base(x.order.ID), x.file.Name)
	return fileserver.Found{Path: name, Rel: name, Back: Back, Info: info{x.file, x.header.Made}}
}

// Hash returns a file's hash in lower-case hex and its description, or fileserver.ErrNotFound.
func (f *Files) Hash(ctx context.Context, minion, name string) (string, fileserver.Found, error) {
	x, err := f.find(ctx, minion, name)
	if err != nil {
		return "", fileserver.Found{}, gone(err)
	}
	if f.HashType == "sha256" {
		return x.file.SHA256, x.describe(), nil
	}
	key := x.order.Content + "/" + x.file.Name
	f.mu.Lock()
	sum, ok := f.sums[key]
	f.mu.Unlock()
	if ok {
		return sum, x.describe(), nil
	}
	hash, err := crypt.NewHash(f.HashType)
	if err != nil {
		return "", fileserver.Found{}, err
	}
	for at := int64(0); at < x.file.Size; at += PieceSize {
		b, err := ReadAt(ctx, f.Contents, f.Seal, x.order.Content, x.file, at)
		if err != nil {
			return "", fileserver.Found{}, gone(err)
		}
		hash.Write(b)
	}
	sum = hex.EncodeToString(hash.Sum(nil))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sums == nil || len(f.sums) >= maxSums {
		f.sums = make(map[string]string)
	}
	f.sums[key] = sum
	return sum, x.describe(), nil
}

// Read returns at most PieceSize bytes of a file from an offset on, as fileserver.Server.Read does, or
// fileserver.ErrNotFound.
func (f *Files) Read(ctx context.Context, minion, name string, offset int64, level int) (fileserver.Chunk, error) {
	x, err := f.find(ctx, minion, name)
	if err != nil {
		return fileserver.Chunk{}, gone(err)
	}
	if offset < 0 {
		return fileserver.Chunk{}, fmt.Errorf("cannot read file %q: offset %d", name, offset)
	}
	b, err := ReadAt(ctx, f.Contents, f.Seal, x.order.Content, x.file, offset)
	if err != nil {
		return fileserver.Chunk{}, gone(err)
	}
	c := fileserver.Chunk{Data: b, Dest: x.describe().Rel}
	if c.Data == nil {
		c.Data = []byte{}
	}
	if level < 1 || len(b) == 0 {
		return c, nil
	}
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, min(level, gzip.BestCompression))
	if err != nil {
		return fileserver.Chunk{}, err
	}
	z.Write(b)
	if err := z.Close(); err != nil {
		return fileserver.Chunk{}, err
	}
	c.Data, c.Gzip = buf.Bytes(), level
	return c, nil
}

// maxOpen is the maximum number of open orders per minion that are listed.
const maxOpen = 1000

// List returns the files that a minion sees, and their directories.
func (f *Files) List(ctx context.Context, minion string) (files, dirs []string, err error) {
	ds, err := f.Queue.Deliveries(ctx, store.DeliveryFilter{Minion: minion, Open: true, Limit: maxOpen})
	if err != nil {
		return nil, nil, err
	}
	for _, d := range ds {
		if !d.Carries {
			continue
		}
		o, err := f.Queue.OrderOf(ctx, d.JID)
		var l *listed
		if err == nil {
			l, err = f.list(ctx, o)
		}
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		dir := path.Join(Dir, path.Base(o.ID))
		for _, file := range l.header.Files {
			files = append(files, path.Join(dir, file.Name))
		}
		if len(l.header.Files) > 0 {
			dirs = append(dirs, Dir, dir)
		}
	}
	for _, list := range []*[]string{&files, &dirs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return files, dirs, nil
}

// info implements fs.FileInfo for a file of an order.
type info struct {
	file File
	made time.Time
}

func (i info) Name() string       { return i.file.Name }
func (i info) Size() int64        { return i.file.Size }
func (i info) Mode() fs.FileMode  { return 0o600 }
func (i info) ModTime() time.Time { return i.made }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }
