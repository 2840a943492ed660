//go:build unix

package atomicfile

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestCVE_2014_3563_PlantedLinks: a user who may write to the directory cannot redirect a temporary file by planting
// a link. Its name is not predictable, and an existing file of that name is not opened (also CVE-2015-1838,
// CVE-2015-1839 and CVE-2023-34049). The test keeps planting links under the names that an attacker could guess:
// earlier names, and names without the random part.
func TestCVE_2014_3563_PlantedLinks(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f")
	last := make(chan string, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := make(chan struct{})
	defer close(stop)
	wg.Go(func() {
		guesses := []string{path, path + ".tmp", filepath.Join(dir, ".f"), filepath.Join(dir, ".f.tmp")}
		for {
			select {
			case <-stop:
				return
			case name := <-last:
				_ = os.Symlink(victim, name)
			default:
				for _, name := range guesses {
					_ = os.Symlink(victim, name)
				}
			}
		}
	})
	for i := range 10_000 {
		f, err := create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("mine"); err != nil {
			t.Fatal(err)
		}
		name := f.Name()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 {
			t.Fatalf("temporary file number %d: %v %v", i, info, err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		select {
		case last <- name:
		default:
		}
	}
	if b, err := os.ReadFile(victim); string(b) != "precious" {
		t.Fatalf("the file of somebody else has %q, %v", b, err)
	}
}
