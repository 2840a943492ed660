package rpm

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Downloaded returns the package files below a directory, by name and version, as pkg.list_downloaded does. Times in
// the result are in the time zone loc.
func Downloaded(ctx context.Context, c *modules.Call, dir string, loc *time.Location) (map[string]any, error) {
	ret := map[string]any{}
	err := filepath.WalkDir(c.Path(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(d.Name(), ".rpm") {
			return nil //nolint:nilerr // unreadable files are skipped
		}
		path = filepath.Join(dir, strings.TrimPrefix(path, c.Path(dir)))
		v, err := c.Exec(ctx, "lowpkg.bin_pkg_info", path)
		if err != nil {
			return err
		}
		info, err := os.Stat(c.Path(path))
		if err != nil {
			return modules.OSError(err)
		}
		pkg, _ := v.(map[string]any)
		name, when := pytext.Str(pkg["name"]), pkglist.Changed(info)
		versions, _ := ret[name].(map[string]any)
		if versions == nil {
			versions = map[string]any{}
			ret[name] = versions
		}
		versions[pytext.Str(pkg["version"])] = map[string]any{
			"path": path, "size": info.Size(), "creation_date_time_t": when.Unix(), "creation_date_time": when.In(loc).Format("2006-01-02T15:04:05"),
		}
		return nil
	})
	return ret, err
}
