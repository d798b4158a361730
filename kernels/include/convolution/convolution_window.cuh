#pragma once

// Cross-correlation of images of several channels with 3 x 3 taps, stride 1 and zeros one pixel around each image. A block
// takes 64 output channels and tiles of pixels. Of a tile, the window of eight input channels is copied to shared memory at
// once, a ring of stages ahead, and serves all nine taps, shifted: every pixel is copied once for 64 output channels.

/// x [batch, channels_in, rows, cols] of whole eights of channels and fours of columns; y has rows and columns of x.
struct WindowSizes {
    int channels_in, channels_out, rows, cols;
    long long pixels;  // of all images

    __device__ long long plane() const { return static_cast<long long>(rows) * cols; }
    __device__ bool before_end(int row, int col) const { return row < rows && col < cols; }
    __device__ bool inside(int row, int col) const { return row >= 0 && col >= 0 && before_end(row, col); }
};

/// What a step works on: an image, and a tile's first pixel.
struct WindowPlace {
    int number, row, col;
};

/// A tile of 4 R rows of 32 pixels for 256 threads that multiply, in steps of eight input channels.
template <int R_>
struct WindowTile {
    static constexpr int R = R_, ROWS = 4 * R, COLS = 32, HEIGHT = ROWS + 2, STAGES = 3, CHANNELS = 64;
    static constexpr int MULTIPLYING = 256;
};

/// The tiles that a block takes, and their steps: columns of the grid share the tiles, its rows the output channels.
template <class T>
struct WindowWalk {
    const WindowSizes sizes;
    int across, along, chunks, steps;

    __device__ explicit WindowWalk(const WindowSizes& sizes) : sizes(sizes) {
        across = (sizes.cols + T::COLS - 1) / T::COLS, along = (sizes.rows + T::ROWS - 1) / T::ROWS;
        chunks = sizes.channels_in / 8;
        const int tiles = static_cast<int>(sizes.pixels / sizes.plane()) * across * along;
        const int apart = gridDim.x, own = tiles - static_cast<int>(blockIdx.x);
        steps = (own + apart - 1) / apart * chunks;
    }

    /// The first output channel.
    __device__ int channel() const { return blockIdx.y * T::CHANNELS; }

    __device__ WindowPlace at(int step) const {
        const int tile = blockIdx.x + step / chunks * gridDim.x;
        return {tile / (across * along), tile / across % along * T::ROWS, tile % across * T::COLS};
    }
    __device__ bool ends_tile(int step) const { return step % chunks == chunks - 1; }

    /// Where an output channel has a pixel.
    __device__ float* output(float* y, const WindowPlace& place, int out, int row, int col) const {
        const long long plane = static_cast<long long>(place.number) * sizes.channels_out + out;
        return y + (plane * sizes.rows + row) * sizes.cols + col;
    }
};
