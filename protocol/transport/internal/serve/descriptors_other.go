//go:build !unix

package serve

// descriptors: elsewhere memory is the limit.
func descriptors() int { return maxDescriptors }
