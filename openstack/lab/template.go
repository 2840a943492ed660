//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// recipe is increased with every change of a template's content.
const recipe = "4"

// A dataTemplate is a directory with initialized databases and keystone's keys. Initializing takes a minute, copying
// a second.
type dataTemplate struct{ dir string }

// template returns the template for the installed packages; the first call creates it.
func template(ctx context.Context, logf func(string, ...any)) (*dataTemplate, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(cache, "brine", "openstack-lab")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	var scratch Lab
	scratch.Dir = home
	versions, err := scratch.run(ctx, "dpkg-query", "-W", "-f", "${Package} ${Version}\n", "keystone", "python3-keystone", "heat-common",
		"python3-heat", "mariadb-server")
	if err != nil {
		return nil, fmt.Errorf("%w\ninterop/install-tools.sh openstack/lab/debian-packages.txt installs what is missing", err)
	}
	sum := sha256.Sum256([]byte(recipe + "\n" + versions))
	t := &dataTemplate{dir: filepath.Join(home, hex.EncodeToString(sum[:8]))}
	lock, err := os.OpenFile(filepath.Join(home, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := flock(ctx, lock); err != nil {
		return nil, err
	}
	if _, err := os.Stat(t.dir); err == nil {
		return t, nil
	}
	logf("lab: initializing the databases of keystone and heat; this is done once")
	return t, t.build(ctx, home)
}

// flock waits for an exclusive lock on f until ctx ends.
func flock(ctx context.Context, f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EWOULDBLOCK {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot lock %s: %w", f.Name(), ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// build initializes databases in a lab that has only MariaDB and keystone, and keeps them.
func (t *dataTemplate) build(ctx context.Context, home string) (err error) {
	work, err := os.MkdirTemp(home, "work-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	l, err := prepare(Options{Dir: work})
	if err != nil {
		return err
	}
	defer l.Close()
	data := l.path("my", "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	if err := l.writeConfiguration(); err != nil {
		return err
	}
	if _, err := l.run(ctx, "mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal",
		"--user=root", "--skip-test-db"); err != nil {
		return err
	}
	if err := l.startSQL(ctx); err != nil {
		return err
	}
	if _, err := l.SQL(ctx, fmt.Sprintf(`
		create database keystone character set utf8; create database heat character set utf8; create database zaqar character set utf8;
		create user %[1]s@'127.0.0.1' identified by '%[2]s'; grant all on *.* to %[1]s@'127.0.0.1';
		create user %[1]s@'localhost' identified by '%[2]s'; grant all on *.* to %[1]s@'localhost'`, sqlUser, sqlPassword)); err != nil {
		return err
	}
	if err := l.initKeystone(ctx); err != nil {
		return err
	}
	if _, err := l.run(ctx, "/usr/bin/python3", "/usr/bin/heat-manage", "--config-file", l.path("heat", "heat.conf"), "db_sync"); err != nil {
		return err
	}
	if err := l.stopSQL(ctx); err != nil {
		return err
	}
	for _, keep := range []string{"my/data", "ks/fernet-keys", "ks/credential-keys"} {
		to := filepath.Join(work, "keep", keep)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(work, keep), to); err != nil {
			return err
		}
	}
	return os.Rename(filepath.Join(work, "keep"), t.dir)
}

// copyTo copies the data into a lab that is not running yet.
func (t *dataTemplate) copyTo(ctx context.Context, l *Lab) error {
	_, err := l.run(ctx, "cp", "-a", "--sparse=always", t.dir+"/.", l.Dir)
	return err
}
