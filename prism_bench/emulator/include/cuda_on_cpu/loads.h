// Loads and stores that name a cache: on the CPU plain ones.
#pragma once

template <typename T>
inline T __ldg(const T* address) { return *address; }
template <typename T>
inline T __ldca(const T* address) { return *address; }
template <typename T>
inline T __ldcg(const T* address) { return *address; }
template <typename T>
inline T __ldcs(const T* address) { return *address; }
template <typename T>
inline T __ldlu(const T* address) { return *address; }
template <typename T>
inline T __ldcv(const T* address) { return *address; }
template <typename T, typename V>
inline void __stwb(T* address, V value) { *address = value; }
template <typename T, typename V>
inline void __stcg(T* address, V value) { *address = value; }
template <typename T, typename V>
inline void __stcs(T* address, V value) { *address = value; }
template <typename T, typename V>
inline void __stwt(T* address, V value) { *address = value; }
