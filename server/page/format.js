// Numbers, sizes and durations as text.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** 1234567 → "1,234,567" */
export function count(number) {
  return whole.format(number);
}

/** (2, "table") → "2 tables" */
export function counted(number, noun, plural = `${noun}s`) {
  return `${count(number)} ${number === 1 ? noun : plural}`;
}

export function bytes(number) {
  let amount = number;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (amount < 1024) return `${unit === "B" ? count(amount) : tenths.format(amount)} ${unit}`;
    amount /= 1024;
  }
  return `${tenths.format(amount)} TiB`;
}

/** 0.42 → "0.4 s", 75 → "1 min 15 s", 7500 → "2 h 5 min"; null → "–" */
export function seconds(number) {
  if (number === null || number === undefined) return "–";
  const amount = Math.max(0, number);
  if (amount < 9.95) return `${tenths.format(amount)} s`;
  return longer(Math.round(amount));
}

/** As `seconds`, in whole seconds at least. */
export function longer(number) {
  const amount = Math.max(0, Math.floor(number));
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const first = Math.max(
    0,
    units.findIndex(([, size]) => amount >= size),
  );
  if (amount < 1) return "0 s";
  const [unit, size] = units[first];
  const rest = first < 3 ? Math.floor((amount % size) / units[first + 1][1]) : 0;
  return `${count(Math.floor(amount / size))} ${unit}${rest ? ` ${rest} ${units[first + 1][0]}` : ""}`;
}

export function percent(number) {
  return `${Math.floor(Math.min(100, Math.max(0, number)))} %`;
}
