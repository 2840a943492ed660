package key

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// TestFinger has the values of stock's salt.utils.crypt.pem_finger.
func TestFinger(t *testing.T) {
	e := modulestest.Env(t)
	e.Opts = func() map[string]any { return map[string]any{"pki_dir": "/pki", "hash_type": "sha256"} }
	dir := filepath.Join(e.Root, "pki")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	call := func(fun string, args ...any) any {
		t.Helper()
		res := modules.NewRegistry(Module).Run(t.Context(), e, modules.Request{Fun: fun, Args: args})
		if res.Err != nil {
			return res.Err.Error()
		}
		return res.Return
	}
	for _, fun := range []string{"key.finger", "key.finger_master"} {
		if got := call(fun); got != "" {
			t.Errorf("%s without a key: %v", fun, got)
		}
	}
	text := "-----BEGIN PUBLIC KEY-----\nAAAA\nBBBB\n\n-----END PUBLIC KEY-----"
	for _, name := range []string{"minion.pub", "minion_master.pub"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const sha = "b1:d9:41:c7:78:ca:2b:8a:bf:df:5c:da:73:9b:bc:87:37:f2:ad:4e:94:31:e4:d5:9b:1f:a2:50:cb:1b:5f:5a"
	for _, fun := range []string{"key.finger", "key.finger_master"} {
		if got := call(fun); got != sha {
			t.Errorf("%s: %v", fun, got)
		}
		if got := call(fun, "md5"); got != "d1:b4:64:a1:af:85:7f:ed:c0:17:10:24:fd:95:24:a4" {
			t.Errorf("%s with md5: %v", fun, got)
		}
		if got := call(fun, "nosuch"); got != "module 'hashlib' has no attribute 'nosuch'" {
			t.Errorf("%s with a hash that there is not: %v", fun, got)
		}
	}
}
