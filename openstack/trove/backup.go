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
	"hash"
	"io"
	"maps"
	"os"
	"path"
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

// createBackup makes a backup. Its state goes to Trove's conductor at the beginning and at the end.
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

// backedUp is a backup that is in the store.
type backedUp struct{ location, checksum string }

// backUp streams the data through compression and encryption to the store.
func (g *guest) backUp(ctx context.Context, id string, info, parent map[string]any) (done backedUp, err error) {
	s, err := g.openStore()
	if err != nil {
		return done, err
	}
	container := cmp.Or(textOf(info, "swift_container"), g.backupContainer)
	name := id + ".xbstream.gz"
	if g.backupKey != "" {
		name += ".enc"
	}
	meta := map[string]string{"datastore": textOf(info, "datastore"), "datastore_version": textOf(info, "datastore_version")}
	args := []string{"mariabackup", "--defaults-file=" + g.c.Path(g.configFile)}
	user, _, err := g.db.credentials()
	if err != nil {
		return done, err
	}
	if _, ok, err := g.db.savedPassword(user); err != nil {
		return done, err
	} else if ok {
		// The password stays in its file: a command line is for all to see.
		args = append(args, "--defaults-extra-file="+g.c.Path(path.Join(g.confDir(), user+".cnf")))
		args = append(args[:1], args[2:]...)
	}
	work, err := os.MkdirTemp("", "trove-backup-")
	if err != nil {
		return done, modules.Errorf("cannot make a directory: %v", err)
	}
	defer os.RemoveAll(work)
	args = append(args, "--backup", "--stream=xbstream", "--user="+user, "--socket="+g.c.Path(g.socket),
		"--datadir="+g.c.Path(g.dataDir), "--target-dir="+work, "--extra-lsndir="+work)
	if parent != nil {
		location, checksum := textOf(parent, "location"), textOf(parent, "checksum")
		lsn, err := g.endOf(ctx, s, location)
		if err != nil {
			return done, err
		}
		args = append(args, "--incremental-lsn="+lsn)
		meta["parent_location"], meta["parent_checksum"] = location, checksum
	}
	sum, sum256 := md5.New(), sha256.New()
	reader, writer := io.Pipe()
	go func() {
		writer.CloseWithError(g.stream(ctx, writer, io.MultiWriter(sum, sum256), args))
	}()
	err = s.put(ctx, container, name, reader, meta)
	_ = reader.CloseWithError(errors.New("the store takes no more"))
	if err != nil {
		return done, err
	}
	lsn, err := readLSN(filepath.Join(work, "xtrabackup_checkpoints"))
	if err != nil {
		return done, errors.Join(err, s.remove(context.WithoutCancel(ctx), container, name))
	}
	meta["lsn"], meta["sha256"] = lsn, hex.EncodeToString(sum256.Sum(nil))
	if err := s.annotate(ctx, container, name, meta); err != nil {
		return done, err
	}
	return backedUp{s.location(container, name), hex.EncodeToString(sum.Sum(nil))}, nil
}

// endOf is the position at which a backup ends.
func (g *guest) endOf(ctx context.Context, s store, location string) (string, error) {
	container, name, err := s.locate(location)
	if err != nil {
		return "", err
	}
	r, meta, err := s.get(ctx, container, name)
	if err != nil {
		return "", modules.Errorf("cannot read the parent backup %s: %v", location, err)
	}
	_ = r.Close()
	if !isNumber(meta["lsn"]) {
		return "", modules.Errorf("cannot build upon the backup %s: its metadata has no position", location)
	}
	return meta["lsn"], nil
}

func isNumber(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// readLSN reads to_lsn from the file that the backup program leaves.
func readLSN(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", modules.Errorf("cannot read the backup's position: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == "to_lsn" && isNumber(strings.TrimSpace(value)) {
			return strings.TrimSpace(value), nil
		}
	}
	return "", modules.Errorf("cannot read the backup's position: %s has no to_lsn", filepath.Base(file))
}

// stream runs the backup program and writes its output, compressed and encrypted, to w and sums.
func (g *guest) stream(ctx context.Context, w, sums io.Writer, args []string) error {
	out := bufio.NewWriterSize(io.MultiWriter(w, sums), 64<<10)
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

// pipe runs a program whose output or input is a stream. Its error has the last lines of what it said.
func (g *guest) pipe(ctx context.Context, cmd modules.Command) error {
	r, err := g.c.Cmd(ctx, cmd)
	if err != nil {
		return modules.Errorf("cannot run %s: %v", cmd.Args[0], err)
	}
	if r.ExitCode != 0 {
		lines := strings.Split(strings.TrimSpace(string(r.Stderr)), "\n")
		return modules.Errorf("%s failed with %d: %s", cmd.Args[0], r.ExitCode, strings.Join(lines[max(0, len(lines)-3):], "\n"))
	}
	return nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// restoreBackup fills the empty data directory from a backup and the backups that it builds upon.
func (g *guest) restoreBackup(ctx context.Context, info map[string]any) error {
	s, err := g.openStore()
	if err != nil {
		return err
	}
	location, checksum := textOf(info, "location"), textOf(info, "checksum")
	if strings.HasSuffix(location, ".enc") && g.backupKey == "" {
		return modules.Errorf("Decryption key not configured for encrypted backup.")
	}
	data := g.c.Path(g.dataDir)
	if err := emptyDir(data); err != nil {
		return modules.Errorf("cannot empty %s: %v", g.dataDir, err)
	}
	if err := g.restoreChain(ctx, s, location, checksum, data, 0); err != nil {
		_ = emptyDir(data) // a half of a database must not be started
		return modules.Errorf("cannot restore the backup %s: %v", textOf(info, "id"), err)
	}
	if err := g.giveAwayAll(g.dataDir); err != nil {
		return err
	}
	return g.resetRootPassword(ctx)
}

// maxChain bounds the backups that build upon each other.
const maxChain = 1000

// restoreChain restores a backup into data, after those that it builds upon.
func (g *guest) restoreChain(ctx context.Context, s store, location, checksum, data string, depth int) error {
	if depth > maxChain {
		return modules.Errorf("more than %d backups build upon each other", maxChain)
	}
	container, name, err := s.locate(location)
	if err != nil {
		return err
	}
	r, meta, err := s.get(ctx, container, name)
	if err != nil {
		return modules.Errorf("cannot read %s: %v", location, err)
	}
	defer r.Close()
	target := data
	if parent := meta["parent_location"]; parent != "" {
		if err := g.restoreChain(ctx, s, parent, meta["parent_checksum"], data, depth+1); err != nil {
			return err
		}
		if target, err = os.MkdirTemp(filepath.Dir(data), "trove-restore-"); err != nil {
			return modules.Errorf("cannot make a directory: %v", err)
		}
		defer os.RemoveAll(target)
	}
	if err := g.unpack(ctx, r, name, checksum, meta["sha256"], target); err != nil {
		return err
	}
	args := []string{"mariabackup", "--no-defaults", "--prepare", "--target-dir=" + data}
	if target != data {
		args = append(args, "--incremental-dir="+target)
	}
	return g.pipe(ctx, modules.Command{Args: args})
}

// unpack decrypts, decompresses and extracts a backup, and checks what it has read to the end.
func (g *guest) unpack(ctx context.Context, r io.Reader, name, checksum, checksum256, target string) error {
	sums := [...]struct {
		hash hash.Hash
		want string
	}{{md5.New(), checksum}, {sha256.New(), checksum256}}
	all := io.TeeReader(r, io.MultiWriter(sums[0].hash, sums[1].hash))
	var err error
	opened := all
	if strings.HasSuffix(name, ".enc") {
		if opened, err = decrypt(opened, g.backupKey); err != nil {
			return err
		}
	}
	plain, err := gzip.NewReader(opened)
	if err == nil {
		err = g.pipe(ctx, modules.Command{Args: []string{"mbstream", "-x", "-C", target}, Stdin: plain})
	}
	if err == nil {
		_, err = io.Copy(io.Discard, plain) // to its checksum
	}
	if _, rest := io.Copy(io.Discard, all); err == nil {
		err = rest
	}
	for _, s := range sums {
		if got := hex.EncodeToString(s.hash.Sum(nil)); s.want != "" && got != s.want {
			return modules.Errorf("the checksum of %s is %s, not %s: it was changed or damaged", name, got, s.want)
		}
	}
	if err != nil {
		return modules.Errorf("cannot unpack %s: %v", name, err)
	}
	return nil
}

// The parameters of "openssl enc -aes-256-cbc -md sha512 -pbkdf2 -iter 10000 -salt", which Trove's own backups have.
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

// encrypt encrypts what is written to it, up to Close.
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

// decrypt yields what encrypt was given.
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
	plain []byte // decrypted, not read yet
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

// giveAwayAll makes a directory and all in it the datastore's.
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

// installData makes the system tables in an empty data directory.
func (g *guest) installData(ctx context.Context) error {
	if _, err := os.Stat(g.c.Path(path.Join(g.dataDir, "mysql"))); err == nil {
		return nil
	}
	args := []string{"mariadb-install-db", "--no-defaults", "--skip-test-db"}
	if !g.isMaria() {
		args = []string{"mysqld", "--no-defaults", "--initialize-insecure"}
	}
	args = append(args, "--datadir="+g.c.Path(g.dataDir))
	if os.Geteuid() == 0 {
		args = append(args, "--user="+g.owner)
	}
	if err := g.pipe(ctx, modules.Command{Args: args, Dir: "/"}); err != nil {
		return err
	}
	if g.isMaria() {
		return nil // root comes in by the socket alone
	}
	return g.resetRootPassword(ctx)
}

// resetChange is the part of the configuration that resets root's password at the server's next start.
const resetChange = "reset-root"

// resetRootPassword gives root a new password before the server takes connections: that of a restored database is not known.
func (g *guest) resetRootPassword(ctx context.Context) error {
	password, err := randomPassword(passwordLength)
	if err != nil {
		return err
	}
	identified := "BY " + quote(password)
	if g.isMaria() {
		identified = "VIA unix_socket OR mysql_native_password USING PASSWORD(" + quote(password) + ")"
	}
	file := path.Join(path.Dir(g.dataDir), ".reset-root.sql")
	defer os.Remove(g.c.Path(file))
	if err := g.writeFile(file, []byte("ALTER USER 'root'@'localhost' IDENTIFIED "+identified+";\n"), 0o600); err != nil {
		return err
	}
	// The password is known before the server has it: a crash between the two is repaired by the next prepare.
	if err := g.db.savePassword("root", password); err != nil {
		return err
	}
	if err := os.Remove(g.c.Path(path.Join(g.confDir(), adminUser+".cnf"))); err != nil && !missing(err) {
		return modules.Errorf("cannot forget the administrator of before: %v", err)
	}
	if err := g.applyOverride(systemAfter, resetChange, map[string]any{"init_file": g.c.Path(file)}); err != nil {
		return err
	}
	err = g.start(ctx, false)
	return errors.Join(err, g.removeOverride(systemAfter, resetChange))
}

// replicationSnapshot makes this instance a source, backs it up, and tells a new replica what it needs.
func (g *guest) replicationSnapshot(ctx context.Context) (any, error) {
	info, err := g.c.Map("snapshot_info")
	if err != nil {
		return nil, err
	}
	if err := g.enableAsMaster(ctx, g.c.Value("replica_source_config")); err != nil {
		return nil, err
	}
	if err := g.createBackup(ctx, info); err != nil {
		return nil, err
	}
	user, err := g.replicationUser(ctx)
	if err != nil {
		return nil, err
	}
	stats, err := g.filesystemStats()
	if err != nil {
		return nil, err
	}
	master, err := g.masterRef(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"dataset": map[string]any{"datastore_manager": g.manager, "dataset_size": stats["used"], "volume_size": stats["total"],
			"snapshot_id": info["id"]},
		"replication_strategy": g.strategy, "master": master,
		"replica_conf": map[string]any{"log_position": map[string]any{}, "replication_user": user}}, nil
}
