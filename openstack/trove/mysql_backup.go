package trove

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/brine-salt/brine/modules"
)

// planBackup streams a backup from mariadb-backup. Its metadata is the position at which the backup ends.
func (m *mysqlServer) planBackup(_ context.Context, _ string, parent map[string]string) (*backupPlan, error) {
	args := []string{"mariabackup"}
	user, _, err := m.credentials()
	if err != nil {
		return nil, err
	}
	if _, ok, err := m.savedPassword(user); err != nil {
		return nil, err
	} else if ok {
		// The password stays in its file, since all users can read command lines.
		args = append(args, "--defaults-extra-file="+m.c.Path(path.Join(m.confDir(), user+".cnf")))
	} else {
		args = append(args, "--defaults-file="+m.c.Path(m.configFile))
	}
	work, err := os.MkdirTemp("", "trove-backup-")
	if err != nil {
		return nil, modules.Errorf("cannot make a directory: %v", err)
	}
	plan := &backupPlan{suffix: "xbstream.gz", discard: func() { _ = os.RemoveAll(work) }}
	plan.args = append(args, "--backup", "--stream=xbstream", "--user="+user, "--socket="+m.c.Path(m.socket),
		"--datadir="+m.c.Path(m.dataDir), "--target-dir="+work, "--extra-lsndir="+work)
	if parent != nil {
		if !isNumber(parent["lsn"]) {
			plan.discard()
			return nil, modules.Errorf("cannot build upon the parent backup: its metadata has no position")
		}
		plan.args = append(plan.args, "--incremental-lsn="+parent["lsn"])
	}
	plan.finish = func(context.Context) (map[string]string, error) {
		lsn, err := readLSN(filepath.Join(work, "xtrabackup_checkpoints"))
		return map[string]string{"lsn": lsn}, err
	}
	return plan, nil
}

func isNumber(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// readLSN returns to_lsn from the file that the backup program writes.
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

// extract unpacks a full backup into the data directory. It unpacks an incremental one next to it, and then applies
// it.
func (m *mysqlServer) extract(ctx context.Context, incremental bool, unpack func(args ...string) error) error {
	data := m.c.Path(m.dataDir)
	prepare := []string{"mariabackup", "--no-defaults", "--prepare", "--target-dir=" + data}
	target := data
	if incremental {
		var err error
		if target, err = os.MkdirTemp(filepath.Dir(data), "trove-restore-"); err != nil {
			return modules.Errorf("cannot make a directory: %v", err)
		}
		defer os.RemoveAll(target)
		prepare = append(prepare, "--incremental-dir="+target)
	}
	if err := unpack("mbstream", "-x", "-C", target); err != nil {
		return err
	}
	return m.pipe(ctx, modules.Command{Args: prepare})
}
