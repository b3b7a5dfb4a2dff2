-- Sends the requests of a file in turn, each as its length, a line end and its bytes; the last line printed is JSON.
-- With STAMP set each is a registration: its dirty timestamp, and the version in its metadata with it, rises from there.
local requests, position = {}, 0
local stamp = tonumber(os.getenv("STAMP"))
local DIRTY, VERSION = "1700000000000", "1.4.000"

-- Cut where the stamp goes: the version comes first, then the timestamp, twice.
local function cut(text)
  local pieces, from = {}, 1
  for _, mark in ipairs({VERSION, DIRTY, DIRTY}) do
    local first, last = text:find(mark, from, true)
    assert(first, "no " .. mark)
    pieces[#pieces + 1] = text:sub(from, first - 1)
    from = last + 1
  end
  pieces[#pieces + 1] = text:sub(from)
  return pieces
end

function init()
  local file = assert(io.open(os.getenv("REQUESTS"), "rb"))
  while true do
    local length = file:read("*n")
    if not length then break end
    file:read(1)
    local text = file:read(length)
    requests[#requests + 1] = stamp and cut(text) or text
  end
  file:close()
end

function request()
  position = position % #requests + 1
  local next = requests[position]
  if not stamp then return next end
  stamp = stamp + 1
  local dirty = string.format("%.0f", stamp)
  return next[1] .. "1.4." .. dirty:sub(-3) .. next[2] .. dirty .. next[3] .. dirty .. next[4]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"answers":%d,"micros":%d,"bytes":%d,"refused":%d,"broken":%d,"p50":%.1f,"p99":%.1f}\n',
    summary.requests, summary.duration, summary.bytes, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
