package testsalt

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"
)

// shareVar names the variable that has this run compare a share of the cases and command lines only: "2/3" for the
// last third.
const shareVar = "BRINE_SHARE"

// InShare reports whether what has this name belongs to the share of this run. Without the variable everything does.
func InShare(t testing.TB, name string) bool {
	t.Helper()
	text := os.Getenv(shareVar)
	if text == "" {
		return true
	}
	var share, shares uint32
	if _, err := fmt.Sscanf(text, "%d/%d", &share, &shares); err != nil || share >= shares {
		t.Fatalf("%s is %q, not a number and a larger one such as 2/3", shareVar, text)
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()%shares == share
}
