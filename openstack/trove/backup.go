package trove

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// The states of a backup (trove.backup.state.BackupState).
const (
	backupBuilding  = "BUILDING"
	backupCompleted = "COMPLETED"
	backupFailed    = "FAILED"
)

// createBackup creates a backup. It sends the state to Trove's conductor at the beginning and at the end.
func (g *guest) createBackup(ctx context.Context, v any) error {
	info, ok := v.(map[string]any)
	if !ok {
		return modules.Usagef("backup_info must be a dictionary, not %s", modules.TypeName(v))
	}
	id := textOf(info, "id")
	if id == "" || !filepath.IsLocal(id) || strings.ContainsAny(id, `/\`) {
		return modules.Errorf("cannot make the backup %s: this is not an id", pytext.Repr(info["id"]))
	}
	parent, _ := info["parent"].(map[string]any)
	kind := "full"
	if parent != nil {
		kind = "incremental"
	}
	stats, err := g.filesystemStats()
	if err != nil {
		return err
	}
	state := map[string]any{"backup_id": id, "size": stats["used"], "state": backupBuilding, "backup_type": kind}
	g.conductor(ctx, "update_backup", maps.Clone(state))
	done, err := g.backUp(ctx, id, info, parent)
	if err != nil {
		state["state"], state["success"] = backupFailed, false
		err = modules.Errorf("Failed to create backup %s, error: %v", id, err)
	} else {
		state["state"], state["success"], state["checksum"], state["location"] = backupCompleted, true, done.checksum, done.location
	}
	g.conductor(context.WithoutCancel(ctx), "update_backup", state)
	return err
}

// backedUp is a stored backup.
type backedUp struct{ location, checksum string }

// backupPlan describes how to create a backup.
type backupPlan struct {
	suffix string   // suffix of the object's name
	args   []string // the program; its standard output is the backup
	// finish returns the metadata of the backup once the program has ended.
	finish func(ctx context.Context) (map[string]string, error)
	// discard removes the plan's files on disk.
	discard func()
}

// backUp streams the data to the store, compressed and encrypted.
func (g *guest) backUp(ctx context.Context, id string, info, parent map[string]any) (done backedUp, err error) {
	s, err := g.openStore(ctx)
	if err != nil {
		return done, err
	}
	meta := map[string]string{"datastore": textOf(info, "datastore"), "datastore_version": textOf(info, "datastore_version")}
	var parentMeta map[string]string
	if parent != nil {
		meta["parent_location"], meta["parent_checksum"] = textOf(parent, "location"), textOf(parent, "checksum")
		if parentMeta, err = g.backupMeta(ctx, s, meta["parent_location"]); err != nil {
			return done, err
		}
	}
	plan, err := g.db.planBackup(ctx, id, parentMeta)
	if err != nil {
		return done, err
	}
	defer plan.discard()
	container := cmp.Or(textOf(info, "swift_container"), g.backupContainer)
	name := id + "." + plan.suffix
	if g.backupKey != "" {
		name += ".enc"
	}
	sum256 := sha256.New()
	reader, writer := io.Pipe()
	streaming, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		writer.CloseWithError(g.stream(streaming, writer, sum256, plan.args))
	}()
	checksum, err := s.put(ctx, container, name, reader, meta)
	// If the store has failed, the program is still running. It must end before the next backup starts.
	stop()
	_ = reader.CloseWithError(errors.New("the store takes no more"))
	<-ended
	if err != nil {
		return done, err
	}
	more, err := plan.finish(ctx)
	if err == nil {
		maps.Copy(meta, more)
		meta["sha256"] = hex.EncodeToString(sum256.Sum(nil))
		err = s.annotate(ctx, container, name, meta)
	}
	if err != nil {
		return done, errors.Join(err, s.remove(context.WithoutCancel(ctx), container, name))
	}
	return backedUp{s.location(container, name), checksum}, nil
}

// backupMeta returns the metadata of a backup in the store.
func (g *guest) backupMeta(ctx context.Context, s store, location string) (map[string]string, error) {
	container, name, err := s.locate(location)
	if err != nil {
		return nil, err
	}
	o, err := s.get(ctx, container, name)
	if err != nil {
		return nil, modules.Errorf("cannot read the parent backup %s: %v", location, err)
	}
	return o.meta, o.Close()
}

// stream runs the backup program and writes its output, compressed and encrypted, to w and sum.
func (g *guest) stream(ctx context.Context, w, sum io.Writer, args []string) error {
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 64<<10)
	var sealed io.WriteCloser = nopCloser{out}
	if g.backupKey != "" {
		var err error
		if sealed, err = encrypt(out, g.backupKey); err != nil {
			return err
		}
	}
	packed := gzip.NewWriter(sealed)
	if err := g.pipe(ctx, modules.Command{Args: args, Stdout: packed}); err != nil {
		return err
	}
	for _, c := range [...]io.Closer{packed, sealed} {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return out.Flush()
}

// pipe runs a program of the datastore, or tar, with a stream as its output or input.
func (g *guest) pipe(ctx context.Context, cmd modules.Command) error {
	return g.pipeAs(ctx, cmd, rootInside)
}

// pipeAs is like pipe, and sets the user in a container. Its error contains the last lines of the program's output.
func (g *guest) pipeAs(ctx context.Context, cmd modules.Command, user string) error {
	name := cmd.Args[0]
	if name != "tar" {
		inside, done, err := g.inside(ctx, cmd, user)
		if err != nil {
			return modules.Errorf("cannot run %s: %v", name, err)
		}
		defer done()
		cmd = inside
	}
	r, err := g.c.Cmd(ctx, cmd)
	if err != nil {
		return modules.Errorf("cannot run %s: %v", name, err)
	}
	if r.ExitCode != 0 {
		lines := strings.Split(strings.TrimSpace(string(r.Stderr)), "\n")
		return modules.Errorf("%s failed with %d: %s", name, r.ExitCode, strings.Join(lines[max(0, len(lines)-3):], "\n"))
	}
	return nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// restoreBackup fills the empty data directory from a backup and the backups that it is based on.
func (g *guest) restoreBackup(ctx context.Context, info map[string]any) error {
	s, err := g.openStore(ctx)
	if err != nil {
		return err
	}
	location, checksum := textOf(info, "location"), textOf(info, "checksum")
	if strings.HasSuffix(location, ".enc") && g.backupKey == "" {
		return modules.Errorf("Decryption key not configured for encrypted backup.")
	}
	for _, dir := range g.dataDirs() {
		if err := emptyDir(g.c.Path(dir)); err != nil {
			return modules.Errorf("cannot empty %s: %v", dir, err)
		}
	}
	if err := g.restoreChain(ctx, s, location, checksum, 0); err != nil {
		for _, dir := range g.dataDirs() {
			_ = emptyDir(g.c.Path(dir)) // an incomplete database must not be started
		}
		return modules.Errorf("cannot restore the backup %s: %v", textOf(info, "id"), err)
	}
	for _, dir := range g.dataDirs() {
		if err := g.giveAwayAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// maxChain limits the length of a chain of incremental backups.
const maxChain = 1000

// restoreChain restores a backup after those that it is based on.
func (g *guest) restoreChain(ctx context.Context, s store, location, checksum string, depth int) error {
	if depth > maxChain {
		return modules.Errorf("more than %d backups build upon each other", maxChain)
	}
	container, name, err := s.locate(location)
	if err != nil {
		return err
	}
	o, err := s.get(ctx, container, name)
	if err != nil {
		return modules.Errorf("cannot read %s: %v", location, err)
	}
	defer func() { _ = o.Close() }()
	parent := o.meta["parent_location"]
	if parent != "" {
		// Reopen it later: a store may close an idle connection.
		_ = o.Close()
		if err := g.restoreChain(ctx, s, parent, o.meta["parent_checksum"], depth+1); err != nil {
			return err
		}
		if o, err = s.get(ctx, container, name); err != nil {
			return modules.Errorf("cannot read %s: %v", location, err)
		}
	}
	return g.db.extract(ctx, parent != "", func(args ...string) error {
		return g.unpack(ctx, o, name, checksum, args)
	})
}

// unpack decrypts and decompresses a backup, passes it to a program, and verifies its checksum.
func (g *guest) unpack(ctx context.Context, o *object, name, checksum string, args []string) error {
	sum, sum256 := md5.New(), sha256.New()
	all := io.TeeReader(o, io.MultiWriter(sum, sum256))
	var err error
	opened := all
	if strings.HasSuffix(name, ".enc") {
		if opened, err = decrypt(opened, g.backupKey); err != nil {
			return err
		}
	}
	plain, err := gzip.NewReader(opened)
	if err == nil {
		err = g.pipe(ctx, modules.Command{Args: args, Stdin: plain})
	}
	if err == nil {
		_, err = io.Copy(io.Discard, plain) // read up to the checksum
	}
	if _, rest := io.Copy(io.Discard, all); err == nil {
		err = rest
	}
	for got, want := range map[string]string{cmp.Or(o.checksum, hex.EncodeToString(sum.Sum(nil))): checksum,
		hex.EncodeToString(sum256.Sum(nil)): o.meta["sha256"]} {
		if want != "" && got != want {
			return modules.Errorf("the checksum of %s is %s, not %s: it was changed or damaged", name, got, want)
		}
	}
	if err != nil {
		return modules.Errorf("cannot unpack %s: %v", name, err)
	}
	return nil
}

// The parameters of "openssl enc -aes-256-cbc -md sha512 -pbkdf2 -iter 10000 -salt", which Trove uses for backups.
const (
	opensslMagic = "Salted__"
	saltSize     = 8
	iterations   = 10000
	keySize      = 32
)

func cipherOf(password string, salt []byte) (cipher.Block, []byte, error) {
	b, err := pbkdf2.Key(sha512.New, password, salt, iterations, keySize+aes.BlockSize)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(b[:keySize])
	return block, b[keySize:], err
}

// encrypt returns a writer that encrypts to w. Close completes the output.
func encrypt(w io.Writer, password string) (io.WriteCloser, error) {
	salt := make([]byte, saltSize)
	if _, err := rand.Read(salt); err != nil {
		return nil, modules.Errorf("cannot encrypt: %v", err)
	}
	block, iv, err := cipherOf(password, salt)
	if err != nil {
		return nil, modules.Errorf("cannot encrypt: %v", err)
	}
	if _, err := w.Write(append([]byte(opensslMagic), salt...)); err != nil {
		return nil, err
	}
	return &encrypter{w: w, mode: cipher.NewCBCEncrypter(block, iv)}, nil
}

type encrypter struct {
	w    io.Writer
	mode cipher.BlockMode
	rest []byte // less than a block
}

func (e *encrypter) Write(p []byte) (int, error) {
	all := append(e.rest, p...)
	whole := len(all) - len(all)%aes.BlockSize
	e.mode.CryptBlocks(all[:whole], all[:whole])
	_, err := e.w.Write(all[:whole])
	e.rest = append([]byte(nil), all[whole:]...)
	return len(p), err
}

// Close writes the last block with its padding.
func (e *encrypter) Close() error {
	n := aes.BlockSize - len(e.rest)
	last := append(e.rest, bytes.Repeat([]byte{byte(n)}, n)...)
	e.mode.CryptBlocks(last, last)
	_, err := e.w.Write(last)
	return err
}

// decrypt returns a reader for the data that encrypt has encrypted.
func decrypt(r io.Reader, password string) (io.Reader, error) {
	head := make([]byte, len(opensslMagic)+saltSize)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(opensslMagic)]) != opensslMagic {
		return nil, modules.Errorf("this is not an encrypted backup")
	}
	block, iv, err := cipherOf(password, head[len(opensslMagic):])
	if err != nil {
		return nil, modules.Errorf("cannot decrypt: %v", err)
	}
	return &decrypter{r: bufio.NewReaderSize(r, 64<<10), mode: cipher.NewCBCDecrypter(block, iv)}, nil
}

type decrypter struct {
	r     *bufio.Reader
	mode  cipher.BlockMode
	plain []byte // decrypted data that has not been read
	buf   [4096]byte
	ended bool
}

func (d *decrypter) Read(p []byte) (int, error) {
	for len(d.plain) == 0 {
		if d.ended {
			return 0, io.EOF
		}
		n, err := io.ReadFull(d.r, d.buf[:])
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n == 0 || n%aes.BlockSize != 0 {
			return 0, modules.Errorf("the encrypted backup ends too early")
		}
		d.mode.CryptBlocks(d.buf[:n], d.buf[:n])
		d.plain = d.buf[:n]
		if _, err := d.r.Peek(1); errors.Is(err, io.EOF) {
			d.ended = true
			pad := int(d.plain[n-1])
			if pad < 1 || pad > aes.BlockSize || !bytes.Equal(d.plain[n-pad:], bytes.Repeat([]byte{byte(pad)}, pad)) {
				return 0, modules.Errorf("cannot decrypt the backup: the key is another one, or the backup is damaged")
			}
			d.plain = d.plain[:n-pad]
		}
	}
	n := copy(p, d.plain)
	d.plain = d.plain[n:]
	return n, nil
}

func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// giveAwayAll makes the datastore's user the owner of a directory and everything in it.
func (g *guest) giveAwayAll(dir string) error {
	uid, gid, ok, err := g.ownerIDs()
	if err != nil || !ok {
		return err
	}
	err = filepath.WalkDir(g.c.Path(dir), func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, uid, gid)
	})
	if err != nil {
		return modules.Errorf("cannot give %s to %s: %v", dir, g.owner, err)
	}
	return nil
}
