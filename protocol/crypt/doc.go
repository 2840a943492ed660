// Package crypt holds the cryptography of Salt's wire: RSA keys and their files, the three RSA operations that Salt
// uses, and the AES container that Salt calls Crypticle.
//
// The RSA operations are (salt/crypt.py, salt/utils/rsax931.py):
//
//   - encryption with OAEP and signatures with PKCS#1 v1.5, by names such as [OAEPSHA1] and [PKCS1v15SHA1]; the lists
//     are closed, every other name is [ErrAlgorithm];
//   - the private-key transform with ANSI X9.31 padding and no hash, from whose result everyone who has the public key
//     can recover the message. Salt proves possession of a key with it.
//
// Keys that are too weak to mean anything are refused when they are parsed. Secrets compare in constant time, and the
// types that hold them hide them from fmt and slog.
//
// The package opens files only in functions named Load, and keeps no state.
package crypt
