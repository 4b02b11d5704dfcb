// Filter a cv::Mat into another one: the edges of a picture.
//
//     flags="-I/usr/include/opencv4 $(pkg-config --cflags --libs sluice-filter)"
//     g++ opencv.cpp $flags -lopencv_imgcodecs -lopencv_core -o opencv
//     ./opencv in.png edges.png
#include <cstdio>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <sluice/filter.h>

// A Mat as sluice sees it: nothing is copied.
static sluice_frame view(const cv::Mat &mat)
{
    sluice_frame frame{};
    frame.size = sizeof frame;
    frame.data[0] = mat.data;
    frame.stride[0] = static_cast<ptrdiff_t>(mat.step);
    return frame;
}

static void print(void *, sluice_log_level, const char *sentence)
{
    std::fprintf(stderr, "%s\n", sentence);
}

int main(int argc, char **argv)
{
    cv::Mat in = cv::imread(argc > 1 ? argv[1] : "in.png", cv::IMREAD_COLOR);
    if (in.empty())
        return 1;
    cv::Mat out(in.size(), CV_8UC1);

    sluice_filter_config config{};
    config.size = sizeof config;
    config.chain = "gray,gaussian=1.4,sobel";
    config.input.size = sizeof config.input;
    config.input.pixfmt = "bgr24"; // CV_8UC3, as imread() gives it
    config.input.width = in.cols;
    config.input.height = in.rows;
    config.output_pixfmt = "gray"; // CV_8UC1
    config.log = print;

    sluice_filter *filter;
    sluice_status status = sluice_filter_create(&config, &filter);
    sluice_frame from = view(in), to = view(out);
    if (!status)
        status = sluice_filter_run(filter, &from, &to, nullptr);
    sluice_filter_destroy(&filter);
    if (status || !cv::imwrite(argc > 2 ? argv[2] : "out.png", out))
        return 1;
    return 0;
}
