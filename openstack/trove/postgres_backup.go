package trove

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/modules"
)

// Trove's strategies for PostgreSQL (backup/drivers/postgres.py of Trove's backup image): a full backup is the output
// of pg_basebackup with the write-ahead log that it needs; an incremental backup is the log that was archived since
// its parent began. When a backup ends, the server leaves a file <segment>.<offset>.backup in the archive, which
// holds the backup's metadata.

const (
	startFile = "start_wal_file"
	stopFile  = "stop_wal_file"
	// recoveryWait is the time limit for a backup's end file to appear in the archive, and for a promotion.
	recoveryWait = time.Minute
)

var isSegment = regexp.MustCompile(`^[0-9A-F]{24}$`).MatchString

func (p *postgresServer) planBackup(ctx context.Context, id string, parent map[string]string) (*backupPlan, error) {
	plan := &backupPlan{suffix: "tar.gz", discard: func() {}}
	if parent != nil {
		return plan, p.planIncremental(ctx, plan, id, parent)
	}
	replica, err := p.isReplica(ctx)
	if err != nil {
		return nil, err
	}
	program, err := p.program("pg_basebackup")
	if err != nil {
		return nil, err
	}
	plan.args = []string{program, "-h", p.c.Path(p.socket), "-p", strconv.FormatInt(p.postgresPort, 10), "-U", superUser, "-Ft",
		"--wal-method=fetch", "--label=" + id, "--pgdata=-"}
	plan.finish = func(ctx context.Context) (map[string]string, error) {
		if replica {
			return nil, nil // a replica does not archive; its backup cannot be a parent
		}
		return p.awaitBackupEnd(ctx, id)
	}
	return plan, nil
}

// planIncremental starts and ends a backup in this session; after that the archive holds all of its log.
func (p *postgresServer) planIncremental(ctx context.Context, plan *backupPlan, id string, parent map[string]string) error {
	from := parent[startFile]
	if !isSegment(from) || !isSegment(parent[stopFile]) {
		return modules.Errorf("cannot build upon the parent backup: its metadata has no position in the log")
	}
	version, err := p.first(ctx, "SHOW server_version_num")
	if err != nil {
		return err
	}
	statements := []string{"SELECT pg_backup_start(" + pgText(id) + ", false)", "SELECT * FROM pg_backup_stop(true)"}
	if len(version) < 6 || version < "150000" {
		statements = []string{"SELECT pg_start_backup(" + pgText(id) + ", false, false)", "SELECT * FROM pg_stop_backup(false, true)"}
	}
	if err := p.exec(ctx, statements...); err != nil {
		return err
	}
	meta, err := p.awaitBackupEnd(ctx, id)
	if err != nil {
		return err
	}
	names, err := p.archived()
	if err != nil {
		return err
	}
	files := slices.DeleteFunc(names, func(name string) bool {
		return !(isSegment(name) && name >= from && name <= meta[stopFile] || strings.HasSuffix(name, ".history"))
	})
	for _, need := range [...]string{parent[stopFile], meta[stopFile]} {
		if !slices.Contains(files, need) {
			return modules.Errorf("cannot build upon the parent backup: the archive of the log has no %s any more", need)
		}
	}
	plan.args = append([]string{"tar", "-cf", "-", "-C", p.c.Path(p.archiveDir), "--"}, files...)
	plan.finish = func(context.Context) (map[string]string, error) { return meta, nil }
	return nil
}

// archived returns the sorted names of the files in the log archive.
func (p *postgresServer) archived() ([]string, error) {
	entries, err := os.ReadDir(p.c.Path(p.archiveDir))
	if err != nil {
		return nil, modules.Errorf("cannot read the archive of the log %s: %v", p.archiveDir, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// awaitBackupEnd waits for the file that the server leaves in the archive when a backup ends, and reads it.
func (p *postgresServer) awaitBackupEnd(ctx context.Context, id string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, recoveryWait)
	defer cancel()
	for {
		names, err := p.archived()
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Backward(names) {
			if !strings.HasSuffix(name, ".backup") {
				continue
			}
			b, err := os.ReadFile(filepath.Join(p.c.Path(p.archiveDir), name))
			if err != nil {
				return nil, modules.Errorf("cannot read %s: %v", name, err)
			}
			if meta := readBackupFile(string(b)); meta["label"] == id {
				return meta, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, modules.Errorf("Failed to get backup metadata for backup %s: the server has not archived its end in %s",
				id, recoveryWait)
		case <-time.After(p.poll):
		}
	}
}

// readBackupFile parses a file <segment>.<offset>.backup, with lines such as "STOP WAL LOCATION: 0/3000100 (file
// 000000010000000000000003)".
func readBackupFile(text string) map[string]string {
	meta := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		at, file, _ := strings.Cut(value, " (file ")
		switch key {
		case "START WAL LOCATION":
			meta["start_segment"], meta[startFile] = at, strings.TrimSuffix(file, ")")
		case "STOP WAL LOCATION":
			meta["stop_segment"], meta[stopFile] = at, strings.TrimSuffix(file, ")")
		case "CHECKPOINT LOCATION":
			meta["checkpoint_location"] = value
		case "LABEL":
			meta["label"] = value
		}
	}
	return meta
}

// extract unpacks a full backup into the data directory and an incremental one into the archive, from which the server
// replays it.
func (p *postgresServer) extract(_ context.Context, incremental bool, unpack func(args ...string) error) error {
	dir := p.dataDir
	if incremental {
		dir = p.archiveDir
	}
	return unpack("tar", "-xf", "-", "--no-same-owner", "-C", p.c.Path(dir))
}

// awaitRecovery waits until the server has replayed its log and accepts writes.
func (p *postgresServer) awaitRecovery(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(p.wait, recoveryWait))
	defer cancel()
	for {
		replica, err := p.isReplica(ctx)
		if err != nil || !replica {
			return err
		}
		select {
		case <-ctx.Done():
			return modules.Errorf("Timeout occurred waiting for replica to exit standby mode")
		case <-time.After(p.poll):
		}
	}
}

// maintain removes old log from the archive when the archive takes more than half of the volume, like the periodic
// task of Trove's manager.
func (p *postgresServer) maintain() error {
	fs, err := statfs(p.c.Path(p.mountPoint))
	if err != nil {
		return modules.Errorf("Filesystem not found (%s)", p.mountPoint)
	}
	return p.cleanArchive(fs.blocks * fs.size / 2)
}

// cleanArchive removes what is older than the last backup while the archive has more than limit bytes. If that is not
// enough, it removes all but the newest file; incremental backups on top of older ones are then no longer possible.
func (p *postgresServer) cleanArchive(limit int64) error {
	names, err := p.archived()
	if err != nil {
		return err
	}
	var total int64
	sizes := make(map[string]int64, len(names))
	last := ""
	for _, name := range names {
		info, err := os.Stat(p.c.Path(filepath.Join(p.archiveDir, name)))
		if missing(err) {
			continue // the server has just renamed or removed it
		}
		if err != nil {
			return modules.Errorf("cannot read the archive of the log: %v", err)
		}
		sizes[name] = info.Size()
		total += info.Size()
		if strings.HasSuffix(name, ".backup") {
			last = name
		}
	}
	newest := ""
	if len(names) > 0 {
		newest = names[len(names)-1]
	}
	for _, keep := range [...]string{last, newest} {
		if keep == "" {
			continue
		}
		for _, name := range names {
			if len(name) < 24 || !isSegment(name[:24]) || len(keep) < 24 || name[:24] >= keep[:24] || sizes[name] == 0 {
				continue
			}
			if total <= limit {
				return nil
			}
			p.c.Logger().Info("Removing archived log: the archive takes more than half of the volume", "file", name)
			if err := os.Remove(p.c.Path(filepath.Join(p.archiveDir, name))); err != nil && !missing(err) {
				return modules.Errorf("cannot remove archived log: %v", err)
			}
			total -= sizes[name]
			sizes[name] = 0
		}
	}
	return nil
}
