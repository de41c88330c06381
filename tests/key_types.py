"""Types of keys by whose order chunks of a table are read."""

TYPES = {
    "INT": "{}",
    "BIGINT UNSIGNED": "1844674407370955{}",
    "DECIMAL(20, 4)": "{}.25",
    "DOUBLE": "{}",
    "DATE": "'2024-05-{:02}'",
    "DATETIME(3)": "'2024-05-{:02} 01:02:03.004'",
    "TIME(2)": "'01:02:{:02}'",
    "TIMESTAMP": "'2024-05-{:02}'",
    "YEAR": "20{:02}",
    "BIT(13)": "{}",
    "BINARY(5)": "{}",
    "VARBINARY(16)": "{}",
    "CHAR(8) CHARACTER SET latin1 COLLATE latin1_bin": "{}",
    "VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci": "{}",
    "INET4": "'10.0.0.{}'",
    "INET6": "'::{}'",
    "ENUM('1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12')": "'{}'",
}
"""Types of keys, and values by a number of up to 12."""
ORDINARY = ("INT", "DOUBLE", "DATETIME(3)", "VARBINARY(16)", "INET6")
"""Types of every run; the others are soaks."""
