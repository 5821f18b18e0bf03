// A small direct-mapped cache per thread from a problem to what was decided about it. Key must be a struct
// without padding whose bytes say all that the decision depends on.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace mi350::route {

template <class Key, class Value, size_t kEntries = 128>
class PlanCache {
  static_assert(std::has_unique_object_representations_v<Key>, "a key with padding never compares equal");
  static_assert(sizeof(Key) % 8 == 0 && (kEntries & (kEntries - 1)) == 0);

 public:
  // The entry for `key`, made by fill(value) if it is not there.
  template <class Fill>
  const Value& find(const Key& key, Fill fill) {
    if (entries_ == nullptr) entries_ = std::make_unique<std::array<Entry, kEntries>>();
    Entry& entry = (*entries_)[hash(key) & (kEntries - 1)];
    if (entry.used && std::memcmp(&entry.key, &key, sizeof(Key)) == 0) return entry.value;
    entry.used = false;
    entry.value = Value();
    fill(entry.value);
    entry.key = key;
    entry.used = true;
    return entry.value;
  }

 private:
  struct Entry {
    Key key;
    Value value;
    bool used = false;
  };

  static uint64_t hash(const Key& key) {
    std::array<uint64_t, sizeof(Key) / 8> words;
    std::memcpy(words.data(), &key, sizeof(Key));
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (const uint64_t word : words) h = (h ^ word) * 0xff51afd7ed558ccdu, h ^= h >> 32;
    return h;
  }

  std::unique_ptr<std::array<Entry, kEntries>> entries_;
};

}  // namespace mi350::route
