//go:build !unix

package confined

// nonblock is nothing where opening a file cannot wait.
const nonblock = 0
